// Package page turns a refusal into HTML: with the built-in template or the shop's own, in any language. It promises that
// a template which cannot be used is found when it is read, with its file and line, and that whatever is put into a
// rendered page later cannot leave the place that the template gave it.
// It knows no reason and no request; and it renders nothing while requests are answered: pages are rendered once, with
// marks where they differ from request to request.
package page

import (
	_ "embed" // for the built-in page
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
)

//go:embed page.html
var builtIn string

// View is what a template may show. What differs from request to request is text here, which stands for a value of
// letters, digits and . _ ~ - = alone; Back and Order are paths.
type View struct {
	Lang   string // the language's tag
	Title  string // what happened, in a few words
	Detail string // whether an order was placed
	Hint   string // what to do; may be empty
	Lead   bool   // Detail is what the shopper must read first
	Reason string // "sold_out"
	Class  string // "sold_out"
	Status int

	Waits      bool // there is a time to wait for
	Opens      bool // it is the start of the sale: the page goes on by itself then
	JitterMS   int64
	RetryAfter string // seconds
	WaitMS     string // milliseconds until the sale starts, or until another attempt is worth it
	Clock      string // the same as 0:42 or 1:00:00
	TimeLabel  string

	Back      string // where to try again, or where the shopper came from
	BackLabel string
	Order     string // where to ask for the order's state; may be empty
	SKU       string // may be empty
	RequestID string
}

// Book is a set of templates and of the words of further languages. It is not changed after Open.
type Book struct {
	pages map[string]*template         // by file; of the shop's own
	plain *template                    // the built-in page
	words map[string]map[string]string // by tag
}

// anyClass is the name of the template of all classes without one of their own.
const anyClass = "page"

// Open parses files, by their names in dir: CLASS.html, CLASS.TAG.html for one language, page.html for all other classes,
// _NAME.html for what these include, and TAG.toml with the words of a language. classes and keys are the names that there
// are. Each error begins with a file and, where it has one, a line.
func Open(dir string, files map[string]string, classes, keys []string) (*Book, error) {
	b := &Book{pages: map[string]*template{}, words: map[string]map[string]string{}}
	var err error
	if b.plain, err = templateOf("built-in page", builtIn, nil); err != nil {
		return nil, fmt.Errorf("BUG: %w", err)
	}
	shared := map[string][]part{}
	names := slices.Sorted(maps.Keys(files)) // "_" stands before the lower case letters
	for _, name := range names {
		if strings.HasPrefix(name, "_") {
			if shared[name], err = parse(in(dir, name), files[name]); err != nil {
				return nil, err
			}
		}
	}
	for _, name := range names {
		switch ext := path.Ext(name); {
		case strings.HasPrefix(name, "_"):
		case ext == ".toml":
			err = b.addWords(dir, name, files[name], keys)
		case ext == ".html":
			err = b.addPage(dir, name, files[name], shared, classes)
		}
		if err != nil {
			return nil, err
		}
	}
	return b, nil
}

func (b *Book) addPage(dir, name, text string, shared map[string][]part, classes []string) error {
	class, tag, _ := strings.Cut(strings.TrimSuffix(name, ".html"), ".")
	if class != anyClass && !slices.Contains(classes, class) {
		return fmt.Errorf("%s: is no page; name it page.html, or after a class: %s", in(dir, name), strings.Join(classes, ", "))
	}
	if tag != "" && !isTag(tag) {
		return fmt.Errorf("%s: %q is no language; write a tag such as en or zh-CN", in(dir, name), tag)
	}
	own, err := templateOf(in(dir, name), text, shared)
	if err != nil {
		return err
	}
	b.pages[name] = own
	return nil
}

func templateOf(file, text string, shared map[string][]part) (*template, error) {
	parts, err := parse(file, text)
	if err != nil {
		return nil, err
	}
	return compile(file, parts, shared)
}

// Render is the page of a class in the language of v.
func (b *Book) Render(v View) string {
	t := b.plain
	for _, name := range []string{v.Class + "." + v.Lang, v.Class, anyClass + "." + v.Lang, anyClass} {
		if own := b.pages[name+".html"]; own != nil {
			t = own
			break
		}
	}
	return string(t.render(nil, v))
}

// in is a file, and what follows its name, in dir.
func in(dir, name string) string {
	if dir == "" {
		return name
	}
	return strings.TrimSuffix(dir, "/") + "/" + name
}
