package page

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode"

	"github.com/BurntSushi/toml"
)

// MaxLanguages bounds how many languages are spoken, since each request that names some is compared with all of them.
const MaxLanguages = 16

// addWords reads the words of a language: key = "text" on each line. It may lack some.
func (b *Book) addWords(dir, name, text string, keys []string) error {
	tag, at := strings.TrimSuffix(name, ".toml"), in(dir, name)
	if !isTag(tag) {
		return fmt.Errorf("%s: %q is no language; name the file by a tag, such as ja.toml", at, tag)
	}
	words := map[string]string{}
	if _, err := toml.Decode(text, &words); err != nil {
		var syntax toml.ParseError
		if errors.As(err, &syntax) {
			return fmt.Errorf("%s:%d: %s", at, syntax.Position.Line, syntax.Message)
		}
		return fmt.Errorf("%s: %s; write each as key = \"text\"", at, strings.TrimPrefix(err.Error(), "toml: "))
	}
	for _, key := range slices.Sorted(maps.Keys(words)) {
		if !slices.Contains(keys, key) {
			return fmt.Errorf("%s:%d: %s: nothing is said so; write one of: %s", at, lineOf(text, key), key, strings.Join(keys, ", "))
		}
		if strings.ContainsFunc(words[key], unicode.IsControl) {
			return fmt.Errorf("%s:%d: %s: has a control character", at, lineOf(text, key), key)
		}
	}
	b.words[tag] = words
	return nil
}

// lineOf is the line that begins with key; 1 where none does.
func lineOf(text, key string) int {
	n := 0
	for line := range strings.Lines(text) {
		n++
		if name, _, _ := strings.Cut(line, "="); strings.Trim(name, " \t\"'") == key {
			return n
		}
	}
	return 1
}

// Languages are the tags that files brought, in order.
func (b *Book) Languages() []string { return slices.Sorted(maps.Keys(b.words)) }

// Words are those that a file has for a language; nil = there is none.
func (b *Book) Words(tag string) map[string]string { return b.words[tag] }

// isTag reports a language tag such as en, zh-CN or zh-Hant-TW (RFC 5646, roughly: what a file's name can be trusted with).
func isTag(text string) bool {
	for i, part := range strings.Split(text, "-") {
		if len(part) < 1 || len(part) > 8 || i == 0 && (len(part) < 2 || len(part) > 3) {
			return false
		}
		for _, c := range part {
			if !(c|0x20 >= 'a' && c|0x20 <= 'z' || i > 0 && c >= '0' && c <= '9') {
				return false
			}
		}
	}
	return true
}
