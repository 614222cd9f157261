package reject

import (
	_ "embed" // for the built-in pages
	"errors"
	"fmt"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"github.com/BurntSushi/toml"
)

var (
	//go:embed head.html
	builtInHead string // of both pages

	//go:embed page.html
	builtInPage string
)

// PageFiles are the shop's own pages and languages: CLASS.html and CLASS.TAG.html for a class, page.html and
// page.TAG.html for all other classes, TAG.toml for the texts of a language.
type PageFiles struct {
	Dir   string            // for messages
	Files map[string]string // by name
}

// templates are the pages by file, and the texts of further languages. They do not change once they are read.
type templates struct {
	builtIn template
	pages   map[string]template
	texts   map[string]map[string]string // by language tag and key
}

// anyClass is the name of the page of all classes without one of their own.
const anyClass = "page"

var (
	pageTerms = vocabulary{
		[]string{"title", "detail", "hint", "lang", "reason", "class", "status", "request_id", "sku", "retry_after",
			"wait_ms", "clock", "time_label", "back", "back_label", "order", "cause", "jitter_ms", "starts", "starts_text",
			"starts_label", "day", "days", "request_id_label", "room", "join_label", "limit"},
		[]string{"waits", "opens", "hint", "order", "sku", "cause", "starts", "request_id", "room", "limit"},
	}
	// languageTag is what a file's name is trusted with: en, zh-CN, zh-Hant-TW (roughly RFC 5646).
	languageTag = regexp.MustCompile(`^[A-Za-z]{2,3}(-[A-Za-z0-9]{1,8})*$`)
)

// newTemplates reads the files. Each error begins with a file and, where it has one, a line.
func newTemplates(in PageFiles) (*templates, error) {
	t := &templates{pages: map[string]template{}, texts: map[string]map[string]string{}}
	var err error
	if t.builtIn, err = parse("built-in page", builtInHead+builtInPage, pageTerms); err != nil {
		return nil, fmt.Errorf("BUG: %w", err)
	}
	for _, name := range slices.Sorted(maps.Keys(in.Files)) {
		at := path.Join(in.Dir, name)
		switch text := in.Files[name]; path.Ext(name) {
		case ".toml":
			err = t.addTexts(at, strings.TrimSuffix(name, ".toml"), text)
		case ".html":
			err = t.addPage(at, strings.TrimSuffix(name, ".html"), text)
		}
		if err != nil {
			return nil, err
		}
	}
	return t, nil
}

func (t *templates) addPage(at, name, text string) (err error) {
	class, tag, hasTag := strings.Cut(name, ".")
	if class != anyClass && class != roomPage && !slices.Contains(classNames[:], class) {
		return fmt.Errorf("%s: is no page; name it page.html, or after a class: %s; or waiting_room.html", at,
			strings.Join(classNames[:], ", "))
	}
	if hasTag && !languageTag.MatchString(tag) {
		return fmt.Errorf("%s: %q is no language; write a tag such as en or zh-CN", at, tag)
	}
	if class == roomPage {
		t.pages[name], err = parseRoomPage(at, text)
		return err
	}
	t.pages[name], err = parse(at, text, pageTerms)
	return err
}

// addTexts reads the texts of a language: key = "text" on each line.
func (t *templates) addTexts(at, tag, text string) error {
	if !languageTag.MatchString(tag) {
		return fmt.Errorf("%s: %q is no language; name the file by a tag, such as ja.toml", at, tag)
	}
	texts := map[string]string{}
	if _, err := toml.Decode(text, &texts); err != nil {
		var syntax toml.ParseError
		if errors.As(err, &syntax) {
			return fmt.Errorf("%s:%d: %s", at, syntax.Position.Line, syntax.Message)
		}
		return fmt.Errorf("%s: %s; write each as key = \"text\"", at, strings.TrimPrefix(err.Error(), "toml: "))
	}
	keys := textKeys()
	for _, key := range slices.Sorted(maps.Keys(texts)) {
		if !slices.Contains(keys, key) {
			return fmt.Errorf("%s:%d: key %s is not known; %s", at, lineOf(text, key), key, suggest("", key, keys))
		}
		if strings.ContainsFunc(texts[key], unicode.IsControl) {
			return fmt.Errorf("%s:%d: %s has a control character", at, lineOf(text, key), key)
		}
		if ours := roomTexts[key][english]; strings.Contains(ours, "{time}") && strings.Contains(texts[key], "{n}") {
			return fmt.Errorf("%s:%d: %s has no number {n}; write a time as {time}, as in %q", at, lineOf(text, key), key,
				ours)
		}
	}
	t.texts[tag] = texts
	return nil
}

// lineOf is the line that begins with key; 1 if none does.
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

// languages are the tags that have a file, in order.
func (t *templates) languages() []string { return slices.Sorted(maps.Keys(t.texts)) }

// page is the first of: the page of class and language, of the class, of the language, of neither, the built-in one.
func (t *templates) page(class, tag string) template {
	for _, name := range []string{class + "." + tag, class, anyClass + "." + tag, anyClass} {
		if own, ok := t.pages[name]; ok {
			return own
		}
	}
	return t.builtIn
}
