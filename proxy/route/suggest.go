package route

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// suggest returns a valid pattern for one in the notation of another router: nginx, Express, Flask, Spring, Next.js. It
// returns "" where it cannot tell what was meant.
func suggest(text string) string {
	method, target, ok := splitForeign(text)
	if !ok {
		return ""
	}
	target = strings.TrimSuffix(strings.TrimLeft(target, "~^="), "$")
	target = strings.ReplaceAll(target, "[^/]", "[^]") // the only slash that ends no segment
	if i := strings.IndexAny(target, "?#"); i > 0 && !strings.ContainsAny(target[:i], "{}[]()*+<") {
		target = target[:i]
	}
	host, path, found := strings.Cut(target, "/")
	switch {
	case !found && strings.Contains(target, "."):
		return "" // a host alone, or a file: the error says which part is missing
	case !found:
		host, path = "", target
	case !strings.Contains(host, ".") && host != "localhost":
		host, path = "", target
	}
	if path, ok = suggestPath(path); !ok {
		return ""
	}
	pattern := strings.TrimSpace(method + " " + host + path)
	p := Pattern{text: pattern}
	if pattern == text || p.parse() != nil {
		return ""
	}
	return pattern
}

// httpMethods are the methods that people write without a space before the path.
var httpMethods = []string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"}

// anyMethods are the words of other routers for each method.
var anyMethods = []string{"ANY", "ALL", "*", "~", "~*", "=", "^~", "LOCATION"}

// splitForeign parts the method, if any, from the target.
func splitForeign(text string) (method, target string, ok bool) {
	words := joinMethods(strings.Fields(text))
	if len(words) == 0 || len(words) > 2 {
		return "", "", false
	}
	target = words[len(words)-1]
	if len(words) == 2 {
		method = strings.ToUpper(words[0])
		if slices.Contains(anyMethods, method) {
			method = ""
		}
	} else {
		for _, m := range httpMethods {
			if rest, found := strings.CutPrefix(target, m); found && strings.HasPrefix(strings.TrimPrefix(rest, ":"), "/") {
				method, target = m, strings.TrimPrefix(rest, ":")
			}
		}
	}
	target = strings.TrimPrefix(strings.TrimPrefix(target, "http://"), "https://")
	return method, target, true
}

// joinMethods makes one word of methods that stand apart, as in "GET, POST /x".
func joinMethods(words []string) []string {
	last := len(words) - 1
	if last < 1 {
		return words
	}
	methods := strings.FieldsFunc(strings.ToUpper(strings.Join(words[:last], "|")),
		func(c rune) bool { return c == '|' || c == ',' })
	for _, m := range methods {
		if !slices.Contains(httpMethods, m) {
			return words
		}
	}
	return []string{strings.Join(methods, "|"), words[last]}
}

// suggestPath rewrites the segments of a path, which may lack its first slash.
func suggestPath(path string) (string, bool) {
	var names, parts []string
	segments := strings.Split(strings.TrimPrefix(path, "/"), "/")
	last := len(segments) - 1
	for i, s := range segments {
		part, name := suggestSegment(s, i == last)
		if part == "" && name == "" && !(i == last && (s == "" || isWildcard(s))) {
			return "", false
		}
		if name != "" {
			for n, first := 2, name; slices.Contains(names, name); n++ {
				name = fmt.Sprintf("%s%d", first, n)
			}
			names, part = append(names, name), "{"+name+part+"}"
		}
		parts = append(parts, part)
	}
	return "/" + strings.Join(parts, "/"), true
}

var (
	// foreignName finds the name in :id, <id>, <int:id>, {id:int}, {id?}, {{id}}, [id], $id and ${id}.
	foreignName = regexp.MustCompile(`^(?::|\$|<(?:\w+:)?|\{{1,2}|\$\{|\[)([A-Za-z_]\w*)` +
		`(?:\(.*\)|\?\}?|:.*\}|[>\]]|\}{1,2})?$`)
	// foreignRest finds the name of everything below in {*rest}, {rest*}, *rest, [...rest] and <path:rest>.
	foreignRest = regexp.MustCompile(`^(?:\{\*{1,2}|\{|\*{1,2}|\[{1,2}\.\.\.|<path:)([A-Za-z_]\w*)` +
		`(?:\*{0,2}\}|[>\]]{1,2})?$`)
	// foreignPrefix finds the literal in "orders*", which stands for everything that begins so.
	foreignPrefix = regexp.MustCompile(`^([\w.~-]+)(?:\*{1,2}|\.\*|\(\.\*\))$`)
	// foreignFile finds the name and the ending in :id.html, <id>.html, <int:id>.html and {id:int}.html.
	foreignFile  = regexp.MustCompile(`^(?::|<(?:\w+:)?|\{)([A-Za-z_]\w*)(?::[^{}]*\}|>)?(\.[a-z]\w*)$`)
	foreignMarks = "^$()[]+|*\\"
)

// isWildcard reports a segment without a name that stands for everything below, if it is the last one.
func isWildcard(s string) bool {
	return slices.Contains([]string{"*", "**", ".*", ".+", "(.*)", "(.+)", "(.*)?"}, s)
}

// suggestSegment returns a literal, or the name of a capture with "..." where it stands for all that follows. Both are
// empty for the end of a path that stands for everything below, and for a segment of which it can make nothing.
func suggestSegment(s string, last bool) (literal, name string) {
	switch {
	case last && (s == "" || isWildcard(s)):
		return "", ""
	case isWildcard(s):
		return "", "name"
	case !strings.ContainsAny(s, foreignMarks) && checkSegment(s) == nil:
		if s[0] != '{' || s[len(s)-1] != '}' {
			return s, ""
		}
		inner := s[1 : len(s)-1]
		if rest, found := strings.CutSuffix(inner, "..."); found {
			return "...", rest
		}
		return "", inner
	}
	if m := foreignPrefix.FindStringSubmatch(s); m != nil && last {
		return m[1] + "/", ""
	}
	if m := foreignFile.FindStringSubmatch(s); m != nil {
		return "{" + m[1] + "}" + m[2], ""
	}
	if m := foreignName.FindStringSubmatch(s); m != nil && !strings.HasPrefix(s, "<path:") {
		return "", m[1]
	}
	if m := foreignRest.FindStringSubmatch(s); m != nil {
		if last {
			return "...", m[1]
		}
		return "", m[1]
	}
	if strings.ContainsAny(s, foreignMarks) && !strings.ContainsAny(s, "{}<>%;") {
		return "", "name"
	}
	return "", ""
}
