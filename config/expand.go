package config

import (
	"fmt"
	"strings"
)

// expandVariables replaces ${NAME} and ${NAME:-fallback} in one string by what env says; the fallback also stands in
// for an empty variable, as in a shell. $$ and $name are the proxy's and stay as they are, so $${NAME} is no reference
// either. What env gives is inserted as it is and not expanded again.
func expandVariables(text string, env func(string) (string, bool)) (string, error) {
	var b strings.Builder
	for {
		i := strings.IndexByte(text, '$')
		if i < 0 || i+1 == len(text) {
			b.WriteString(text)
			return b.String(), nil
		}
		b.WriteString(text[:i])
		text = text[i:]
		if text[1] != '{' {
			b.WriteString(text[:2])
			text = text[2:]
			continue
		}
		inside, rest, closed := strings.Cut(text[2:], "}")
		if !closed {
			return "", fmt.Errorf("%q has no closing }; write $${ for a literal one", text)
		}
		value, err := lookUpVariable(inside, env)
		if err != nil {
			return "", err
		}
		b.WriteString(value)
		text = rest
	}
}

// lookUpVariable answers for what stands between the braces. env may be nil: nothing is set.
func lookUpVariable(inside string, env func(string) (string, bool)) (string, error) {
	name, fallback, has := strings.Cut(inside, ":-")
	if !envName(name) {
		return "", fmt.Errorf("%q names no environment variable; write ${NAME} or ${NAME:-fallback}, and $${ for a "+
			"literal one", "${"+inside+"}")
	}
	value, set := "", false
	if env != nil {
		value, set = env(name)
	}
	switch {
	case value != "":
		return value, nil
	case has:
		return fallback, nil
	case set:
		return "", nil
	}
	if name == strings.ToLower(name) { // variables of the environment have capitals
		return "", fmt.Errorf("${%s} is not set; set it, write ${%s:-fallback}, or $(%s) for a variable of the request",
			name, name, name)
	}
	return "", fmt.Errorf("${%s} is not set; set it, or write ${%s:-fallback}", name, name)
}

func envName(name string) bool {
	for i, c := range name {
		letter := c == '_' || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z')
		if !letter && (i == 0 || c < '0' || c > '9') {
			return false
		}
	}
	return name != ""
}
