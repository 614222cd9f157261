package config

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
)

// The rules that many keys share. Each notes a problem at its key and goes on.

// OneOf wants one of a few words.
func (r *report) OneOf(key, value string, allowed ...string) {
	r.Rule(key, choices(allowed))
	if !slices.Contains(allowed, value) {
		r.Fail(key, "%q is not known; write %s", value, choices(allowed))
	}
}

// Filled wants any text at all.
func (r *report) Filled(key, value string) bool {
	r.Rule(key, "not empty")
	if value == "" {
		r.Fail(key, "is empty; write a value")
	}
	return value != ""
}

// Positive wants a duration above 0.
func (r *report) Positive(key string, d time.Duration) {
	r.Rule(key, "above 0s")
	if d <= 0 {
		r.Fail(key, "%v must be above 0s%s", d, zeroHint(d))
	}
}

// NotNegative wants a duration that is 0 or above.
func (r *report) NotNegative(key string, d time.Duration) {
	r.Rule(key, "0s or more")
	if d < 0 {
		r.Fail(key, "%v must not be below 0s", d)
	}
}

// between wants low <= value <= high.
func between[T cmp.Ordered](r *report, key string, value, low, high T) {
	r.Rule(key, fmt.Sprintf("%v to %v", low, high))
	if value >= low && value <= high {
		return
	}
	r.Fail(key, "%v must be from %v to %v%s", value, low, high, zeroHint(value))
}

// zeroHint is what to tell of a 0 where none may stand: in other programs it is often "no limit".
func zeroHint[T cmp.Ordered](value T) string {
	var zero T
	if value != zero {
		return ""
	}
	return "; 0 is not \"off\": leave the key out for its default"
}

// atMost reports a contradiction: the key's value must not exceed that of another key. It is reported at the
// one of the two that is in the file. A limit that is wrong by itself contradicts nothing.
func atMost[T cmp.Ordered](r *report, key string, value T, other string, limit T) {
	var zero T
	if value <= limit || limit <= zero {
		return
	}
	if _, has := r.Lines[key]; has {
		r.Fail(key, "%v exceeds %s (%v); lower it, or raise the other", value, other, limit)
		return
	}
	r.Fail(other, "%v is below %s (%v); raise it, or lower the other", limit, key, value)
}

// Unique wants values that differ.
func (r *report) Unique(values []string, key func(i int) string) {
	first := map[string]int{}
	for i, v := range values {
		if j, ok := first[v]; ok && v != "" {
			r.Fail(key(i), "%q stands at %s too; change or drop one", v, key(j))
			continue
		}
		first[v] = i
	}
}

// Token wants the name of a header (RFC 9110, 5.1).
func (r *report) Token(key, value string) {
	r.Rule(key, "a header name")
	const marks = "!#$%&'*+-.^_`|~"
	for _, c := range value {
		if !(c >= '0' && c <= '9' || c >= 'A' && c <= 'Z' || c >= 'a' && c <= 'z' || strings.ContainsRune(marks, c)) {
			r.Fail(key, "%q is not a header name; write letters, digits and -", value)
			return
		}
	}
	r.Filled(key, value)
}

// Variables wants only these $names in a template. $$ is a dollar sign.
func (r *report) Variables(key, template string, known ...string) {
	r.Rule(key, "text with $"+strings.Join(known, " $"))
	for _, name := range variablesOf(template) {
		if slices.Contains(known, name) {
			continue
		}
		if strings.Trim(name, "(") == "" {
			r.Fail(key, "%q has a $ without a name, or a ( without its ); write $%s, $(%s) before letters, or $$ for a dollar "+
				"sign", template, known[0], known[0])
		} else if end := longestPrefix(name, known); end != "" && len(name) > len(end)+2 {
			r.Fail(key, "$%s is not known; where a name ends before its word does, write $(%s)%s", name, end, name[len(end):])
		} else if near := Nearest(name, known); near != "" {
			r.Fail(key, "$%s is not known; did you mean $%s?", name, near)
		} else {
			r.Fail(key, "$%s is not known; here may stand $%s, and $$ for a dollar sign", name, strings.Join(known, " $"))
		}
	}
}

// longestPrefix is the longest of known that name begins with, before an underscore; "" = none.
func longestPrefix(name string, known []string) (longest string) {
	for _, k := range known {
		if strings.HasPrefix(name, k+"_") && len(k) > len(longest) {
			longest = k
		}
	}
	return longest
}

// variablesOf lists the $names in a template, those in $(parentheses), and those with a name in quotes: form("a[b]").
func variablesOf(template string) []string {
	var names []string
	for i := 0; i < len(template); i++ {
		if template[i] != '$' {
			continue
		}
		rest := template[i+1:]
		end := 0
		for end < len(rest) && (rest[end] == '_' || rest[end]|0x20 >= 'a' && rest[end]|0x20 <= 'z' ||
			rest[end] >= '0' && rest[end] <= '9') {
			end++
		}
		closed := closingBrace(rest[end:])
		switch {
		case end == 0 && closed > 0:
			names = append(names, rest[1:closed])
			i += len("$(") + closed - 1
			continue
		case end == 0 && strings.HasPrefix(rest, "$"):
			i++
			continue
		case closed > 0 && strings.ContainsAny(rest[end:end+closed], `"'`):
			end += closed + 1
		}
		names = append(names, rest[:end])
		i += end
	}
	return names
}

// closingBrace is where the parenthesis is closed that text begins with, not within quotes; 0 = it begins with none, or
// that is not closed.
func closingBrace(text string) int {
	if !strings.HasPrefix(text, "(") {
		return 0
	}
	open := 0
	for i := 0; i < len(text); i++ {
		switch c := text[i]; c {
		case '(':
			open++
		case ')':
			open--
		case '"', '\'':
			i += 1 + max(strings.IndexByte(text[i+1:], c), -1)
		}
		if open == 0 {
			return i
		}
	}
	return 0
}

// isOf reports whether a name of variablesOf is of a place: "jwt_sub" and jwt("sub") are of "jwt".
func isOf(name, place string) bool {
	rest, ok := strings.CutPrefix(name, place)
	return ok && (strings.HasPrefix(rest, "_") || strings.HasPrefix(rest, "("))
}

// choices renders a list of words for a message.
func choices(words []string) string {
	quoted := make([]string, len(words))
	for i, w := range words {
		quoted[i] = fmt.Sprintf("%q", w)
	}
	if n := len(quoted); n > 1 {
		return strings.Join(quoted[:n-1], ", ") + " or " + quoted[n-1]
	}
	return strings.Join(quoted, "")
}
