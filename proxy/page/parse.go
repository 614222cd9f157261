package page

import (
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// A template is text with actions in double braces: those of Go's html/template that a page needs.
//
//	{{.Title}}                               a field of View; also {{$.Title}}
//	{{if .Waits}} … {{else if …}} … {{else}} … {{end}}
//	{{if not .Waits}}  {{if eq .Reason "window" "rate"}}  {{if ne .Status 409}}
//	{{with .Hint}} … {{.}} … {{else}} … {{end}}
//	{{template "_top.html" .}}               another file
//	{{/* a comment */}}, and {{- … -}} to drop the white space around an action
//
// Everything else is refused: by its line, and with what to write instead.

// part is a piece of a template: text, or what an action asks for.
type part struct {
	line    int
	kind    partKind
	text    string // itself; or the name of the file to include
	field   string // to show
	on      condition
	then    []part
	instead []part
}

type partKind uint8

const (
	plainText partKind = iota
	shown
	branch
	included
)

// condition is whether a field has a value; or whether it is, or is not, one of some.
type condition struct {
	field  string
	negate bool
	among  []string // nil = whether it has a value
}

// fault is what is wrong with a template.
type fault struct {
	file string
	line int
	what string
}

func (f *fault) Error() string { return f.file + ":" + strconv.Itoa(f.line) + ": " + f.what }

// parser reads one file. Its methods panic with a *fault, which parse returns.
type parser struct {
	file string
	rest string
	line int
	dots []string // the fields of the {{with}} around
}

// action is the inside of a pair of braces.
type action struct {
	line  int
	words []string
}

func (a action) String() string { return "{{" + strings.Join(a.words, " ") + "}}" }

func (a action) is(word string) bool { return len(a.words) > 0 && a.words[0] == word }

func parse(file, text string) (parts []part, err error) {
	defer func() {
		if r := recover(); r != nil {
			f, ok := r.(*fault)
			if !ok {
				panic(r)
			}
			err = f
		}
	}()
	p := parser{file: file, rest: text, line: 1}
	if i := strings.IndexFunc(text, func(c rune) bool { return c < ' ' && !isSpace(byte(c)) }); i >= 0 { // it could be taken for a gap
		p.fail(1+strings.Count(text[:i], "\n"), "has a control character")
	}
	parts, last := p.parts(0)
	if last != nil {
		p.fail(last.line, "unexpected %s", last)
	}
	return parts, nil
}

func (p *parser) fail(line int, format string, args ...any) {
	panic(&fault{p.file, line, fmt.Sprintf(format, args...)})
}

// maxDepth bounds how deep actions stand in one another, and files in files.
const maxDepth = 30

// parts reads up to an {{else}} or {{end}}, which it returns; nil at the end of the file.
func (p *parser) parts(depth int) (all []part, last *action) {
	if depth > maxDepth {
		p.fail(p.line, "more than %d {{if}} and {{with}} in one another", maxDepth)
	}
	for {
		line := p.line
		text, a := p.next()
		if text != "" {
			all = append(all, part{line: line, text: text})
		}
		switch {
		case a == nil:
			return all, nil
		case len(a.words) == 0: // a comment
		case a.is("end"), a.is("else"):
			return all, a
		default:
			all = append(all, p.act(*a, depth))
		}
	}
}

// next is the text before the next action, and that; nil when there is none.
func (p *parser) next() (text string, a *action) {
	text, inside, found := strings.Cut(p.rest, "{{")
	p.line += strings.Count(text, "\n")
	if !found {
		p.rest = ""
		return text, nil
	}
	line := p.line
	if rest, trims := strings.CutPrefix(inside, "-"); trims && rest != "" && isSpace(rest[0]) {
		text, inside = strings.TrimRight(text, spaces), rest
	}
	words, rest := p.words(inside, line)
	p.rest = rest
	return text, &action{line, words}
}

const spaces = " \t\r\n"

func isSpace(c byte) bool { return strings.IndexByte(spaces, c) >= 0 }

// words cuts an action at its white space, up to its closing braces, and what follows.
func (p *parser) words(s string, line int) (words []string, rest string) {
	if comment := strings.TrimLeft(s, spaces); strings.HasPrefix(comment, "/*") {
		_, after, ok := strings.Cut(comment, "*/")
		closing := strings.TrimLeft(after, spaces)
		trims := strings.HasPrefix(closing, "-}}")
		if !ok || !trims && !strings.HasPrefix(closing, "}}") {
			p.fail(line, "unclosed comment: it ends with */}}")
		}
		return nil, p.after(s, strings.TrimPrefix(closing, "-")[2:], trims)
	}
	for left := s; left != ""; {
		switch c := left[0]; {
		case isSpace(c):
			left = left[1:]
		case strings.HasPrefix(left, "}}"):
			return p.filled(words, line), p.after(s, left[2:], false)
		case strings.HasPrefix(left, "-}}"):
			return p.filled(words, line), p.after(s, left[3:], true)
		case c == '"' || c == '`':
			quoted, err := strconv.QuotedPrefix(left)
			if err != nil {
				p.fail(line, "unclosed action or quote")
			}
			words, left = append(words, quoted), left[len(quoted):]
		default:
			end := strings.IndexAny(left, spaces+"\"`}")
			if end < 0 {
				p.fail(line, "unclosed action: it ends with }}")
			}
			if end == 0 {
				p.fail(line, "unexpected %q in an action", c)
			}
			words, left = append(words, left[:end]), left[end:]
		}
	}
	p.fail(line, "unclosed action: it ends with }}")
	return nil, ""
}

func (p *parser) filled(words []string, line int) []string {
	if len(words) == 0 {
		p.fail(line, "nothing stands between {{ and }}")
	}
	return words
}

// after counts the lines of an action that began at s, and drops the white space behind it.
func (p *parser) after(s, rest string, trims bool) string {
	if trims {
		rest = strings.TrimLeft(rest, spaces)
	}
	p.line += strings.Count(s[:len(s)-len(rest)], "\n")
	return rest
}

// act reads what an action asks for, and what belongs to it.
func (p *parser) act(a action, depth int) part {
	switch a.words[0] {
	case "if":
		return p.choose(a, condition{}, depth)
	case "with":
		if len(a.words) != 2 {
			p.fail(a.line, "%s: write {{with .Field}}", a)
		}
		return p.choose(a, condition{field: p.field(a, a.words[1])}, depth)
	case "template":
		return p.include(a)
	case "range", "define", "block", "break", "continue":
		p.fail(a.line, "%s: there is no {{%s}} here: there are {{if}}, {{with}} and {{template}}", a, a.words[0])
	}
	if len(a.words) != 1 {
		p.fail(a.line, "%s: a field stands alone, as {{.Title}}: there are no functions, variables and pipelines here", a)
	}
	return part{line: a.line, kind: shown, field: p.field(a, a.words[0])}
}

// include reads {{template "_top.html" .}}: what is shown there is shown of the same.
func (p *parser) include(a action) part {
	whole := "."
	if len(p.dots) > 0 {
		whole = "$"
	}
	if len(a.words) == 3 && (a.words[2] == whole || a.words[2] == "$") {
		if name, err := strconv.Unquote(a.words[1]); err == nil {
			return part{line: a.line, kind: included, text: name}
		}
	}
	p.fail(a.line, `%s: write {{template "_name.html" %s}}`, a, whole)
	return part{}
}

// choose reads the branches of {{if}}, where on is empty, and {{with}}.
func (p *parser) choose(a action, on condition, depth int) part {
	with := on.field != ""
	if !with {
		on = p.condition(a, a.words[1:])
	} else {
		p.dots = append(p.dots, on.field)
	}
	one := part{line: a.line, kind: branch, on: on}
	var last *action
	one.then, last = p.parts(depth + 1)
	if with {
		p.dots = p.dots[:len(p.dots)-1]
	}
	if last != nil && last.is("else") {
		switch {
		case len(last.words) == 1:
			one.instead, last = p.parts(depth + 1)
		case last.words[1] == "if" && !with:
			if depth >= maxDepth {
				p.fail(last.line, "more than %d {{else if}}", maxDepth)
			}
			one.instead = []part{p.choose(action{last.line, last.words[1:]}, condition{}, depth+1)}
			return one
		default:
			p.fail(last.line, "%s: write {{else}}, and another action behind it", last)
		}
	}
	if last == nil {
		p.fail(a.line, "%s: its {{end}} is missing", a)
	}
	if last.is("else") {
		p.fail(last.line, "unexpected {{else}}: there is one already")
	}
	if len(last.words) > 1 {
		p.fail(last.line, "%s: write {{end}}", last)
	}
	return one
}

func (p *parser) condition(a action, words []string) (on condition) {
	const way = "%s: write {{if .Waits}}, {{if not .Waits}}, {{if eq .Reason \"window\"}} or {{if ne .Reason \"window\"}}; for two conditions, one {{if}} in another"
	if len(words) == 0 {
		p.fail(a.line, "missing value for if: "+way, a)
	}
	switch word := words[0]; {
	case len(words) == 1:
		return condition{field: p.field(a, word)}
	case len(words) == 2 && word == "not":
		return condition{field: p.field(a, words[1]), negate: true}
	case len(words) > 2 && word == "eq", len(words) == 3 && word == "ne":
		on = condition{field: p.field(a, words[1]), negate: word == "ne"}
	default:
		p.fail(a.line, way, a)
	}
	if slices.Contains(ofRequests, on.field) {
		p.fail(a.line, "%s: .%s differs from request to request and is put in later: it can be shown, and not compared", a, on.field)
	}
	for _, word := range words[2:] {
		on.among = append(on.among, p.constant(a, on.field, word))
	}
	return on
}

// constant is a word that a field is compared with: in quotes if it is text.
func (p *parser) constant(a action, field, word string) string {
	kind := kindOf(field)
	if text, err := strconv.Unquote(word); err == nil && kind == reflect.String {
		return text
	}
	n, err := strconv.ParseInt(word, 10, 64)
	if err == nil && (kind == reflect.Int || kind == reflect.Int64) {
		return strconv.FormatInt(n, 10)
	}
	p.fail(a.line, "%s: .%s is of another kind than %s", a, field, word)
	return ""
}

// field is the name that a word like .Title has; of {{.}} that of the {{with}} around.
func (p *parser) field(a action, word string) string {
	whole, dotted := strings.CutPrefix(word, "$")
	name, ok := strings.CutPrefix(whole, ".")
	switch {
	case word == "." && len(p.dots) > 0:
		return p.dots[len(p.dots)-1]
	case !ok || name == "":
		p.fail(a.line, "%s: a field is written .Title; there are no functions, variables and pipelines here", a)
	case kindOf(name) == reflect.Invalid:
		p.fail(a.line, "%s: there is no field %s; there are %s", a, name, strings.Join(fieldNames(), ", "))
	case len(p.dots) > 0 && !dotted:
		p.fail(a.line, "%s: in a {{with}}, write $.%s", a, name)
	}
	return name
}

func kindOf(field string) reflect.Kind {
	if f, ok := reflect.TypeFor[View]().FieldByName(field); ok {
		return f.Type.Kind()
	}
	return reflect.Invalid
}

func fieldNames() (all []string) {
	view := reflect.TypeFor[View]()
	for i := range view.NumField() {
		all = append(all, "."+view.Field(i).Name)
	}
	return all
}
