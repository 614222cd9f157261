package param

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"sluice/config"
)

// variableList is what messages name as the choices.
const variableList = "$remote_addr $host $request_id $path_x $arg_x $cookie_x $http_x $form_x $json_x $jwt_x $signed_x"

// foreignPrefixes are the words of other servers for a place in a request.
var foreignPrefixes = map[string]string{
	"body": "json", "query": "arg", "args": "arg", "param": "path", "params": "path", "header": "http", "headers": "http",
	"cookies": "cookie", "sent_http": "http",
}

// checkConstant reports a value without "$" that reads like a reference: every request would have the same value.
// names are the {names} of the route's pattern.
func (v *Variable) checkConstant(names []string) error {
	if !v.Fixed() {
		return nil
	}
	text := string(v.parts[0].fixed)
	word := strings.Trim(text, "{}<>[]%:# ")
	if right := referenceTo(word, names); right != "" {
		return fmt.Errorf("%q is the same for every request: write %q", text, right)
	}
	if word != text || strings.ContainsAny(text, "{}<>") {
		return fmt.Errorf("%q is the same for every request: write a variable; one of %s", text, variableList)
	}
	return nil
}

// referenceTo returns the reference that a word without "$" was meant to be, or "".
func referenceTo(word string, names []string) string {
	if _, plain := plainNames[word]; plain {
		return "$" + word
	}
	if slices.Contains(names, word) {
		return "$path_" + word
	}
	i := strings.IndexAny(word, "_.")
	if i <= 0 || i+1 == len(word) || nameEnd(word[i+1:], "-.") != len(word)-i-1 {
		return ""
	}
	prefix := word[:i]
	if ours, ok := foreignPrefixes[prefix]; ok {
		prefix = ours
	}
	if _, ok := prefixes[prefix]; !ok {
		return ""
	}
	return "$" + prefix + "_" + word[i+1:]
}

// unknownVariable is the error for a reference that begins with no known prefix. rest is the text that follows it.
func unknownVariable(reference, rest string, names []string) error {
	word := strings.TrimPrefix(reference, "$")
	if strings.HasPrefix(rest, ".") {
		word += rest[:1+nameEnd(rest[1:], "-.")]
	}
	if right := referenceTo(word, names); right != "" && right != reference {
		return fmt.Errorf("$%s: unknown variable; write %s", word, right)
	}
	if near := nearestTo(word); near != "" {
		return fmt.Errorf("$%s: unknown variable; did you mean %s?", word, near)
	}
	return fmt.Errorf("%s: unknown variable; one of %s", reference, variableList)
}

// nearestTo returns the reference that a word without "$" is a misspelling of, or "".
func nearestTo(word string) string {
	if plain := config.Nearest(word, slices.Sorted(maps.Keys(plainNames))); plain != "" {
		return "$" + plain
	}
	i := strings.IndexAny(word, "_.")
	if i <= 0 || i+1 == len(word) {
		return ""
	}
	near := config.Nearest(word[:i], slices.Sorted(maps.Keys(prefixes)))
	if near == "" {
		return ""
	}
	return "$" + near + "_" + word[i+1:]
}
