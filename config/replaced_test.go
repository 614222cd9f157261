package config

import (
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// A key of an earlier version is an error that names what to do, and names no key that is gone as well.
func TestReplaced_KeyOfAnEarlierVersionNamesWhatToDo(t *testing.T) {
	known := structKeys(reflect.TypeFor[Config](), "")
	named := regexp.MustCompile(`\b[a-z]+(?:\.[a-z_]+)+\b`)
	for key, message := range replacements {
		if slices.Contains(known, key) {
			t.Errorf("%s is a key", key)
		}
		table, name := cutLast(key)
		text := name + " = 1\n"
		if table != "" {
			text = "[" + table + "]\n" + text
		}
		for _, list := range repeated {
			text = strings.Replace(text, "["+list+"]", "[["+list+"]]", 1)
		}
		want := replaced(key, 1)
		if !regexp.MustCompile("delete|write|is now|is \"|set ").MatchString(want) {
			t.Errorf("%s: %q does not say what to do", key, want)
		}
		_, err := Parse("config.toml", []byte(text), nil)
		if err == nil || !strings.Contains(err.Error(), ": "+want) {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
		for _, other := range named.FindAllString(message, -1) {
			top, _, _ := strings.Cut(other, ".")
			isKey := func(k string) bool { return k == other || strings.HasPrefix(k, other+".") }
			if slices.ContainsFunc(known, func(k string) bool { return strings.HasPrefix(k, top+".") }) &&
				!slices.ContainsFunc(known, isKey) {
				t.Errorf("%s: %q names %s, which is no key", key, message, other)
			}
		}
	}
}
