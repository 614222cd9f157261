package page

import (
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// Fields of free text: they are escaped where they stand, and must not be part of an address.
var freeText = []string{"Title", "Detail", "Hint", "TimeLabel", "BackLabel"}

// ofRequests are the fields of which a page shows the request's own.
var ofRequests = []string{"RetryAfter", "WaitMS", "Clock", "Back", "Order", "SKU", "RequestID"}

// template is a page as it will be written: every field knows how it is escaped.
type template struct{ steps []step }

// step writes text, or a field, or what one of two branches does.
type step struct {
	text    string
	field   string
	escape  func(reflect.Value) string
	on      condition
	then    []step
	instead []step
}

// maxText bounds a page together with what it includes, and how many pieces those have.
const (
	maxText  = 1 << 20
	maxSteps = 20_000
)

// compiler puts the parsed files of a page together. Its methods panic with a *fault, which compile returns.
type compiler struct {
	shared map[string][]part
	open   []string // the files that are being included
	left   int      // of maxText
	steps  int
	at     place
}

// compile finds out where in the page each field stands, and so how it is escaped.
func compile(file string, parts []part, shared map[string][]part) (t *template, err error) {
	defer func() {
		if r := recover(); r != nil {
			f, ok := r.(*fault)
			if !ok {
				panic(r)
			}
			err = f
		}
	}()
	c := compiler{shared: shared, open: []string{file}, left: maxText}
	steps := c.all(parts)
	if c.at.at != inText {
		c.fail(1+countLines(parts), "the page ends within %s", c.at)
	}
	return &template{steps}, nil
}

// countLines is the number of lines before the last piece.
func countLines(parts []part) int {
	if len(parts) == 0 {
		return 0
	}
	last := parts[len(parts)-1]
	return last.line - 1 + strings.Count(last.text, "\n")
}

func (c *compiler) fail(line int, format string, args ...any) {
	panic(&fault{c.open[len(c.open)-1], line, fmt.Sprintf(format, args...)})
}

func (c *compiler) all(parts []part) (steps []step) {
	for _, p := range parts {
		if c.steps++; c.steps > maxSteps {
			c.fail(p.line, "more than %d pieces, with what is included", maxSteps)
		}
		switch p.kind {
		case plainText:
			text, odd := c.at.follow(p.text)
			if odd {
				c.fail(p.line+strings.Count(p.text, "\n"), "an action cuts a tag, a name or a sign in two: put it before or behind; a lone < in text is written &lt;")
			}
			if c.left -= len(p.text); c.left < 0 {
				c.fail(p.line, "more than %d MiB, with what is included", maxText>>20)
			}
			steps = append(steps, step{text: text})
		case shown:
			if escape := c.escape(p); escape != nil {
				steps = append(steps, step{field: p.field, escape: escape})
			}
		case branch:
			steps = append(steps, c.branch(p))
		case included:
			steps = append(steps, c.include(p)...)
		}
	}
	return steps
}

func (c *compiler) branch(p part) step {
	c.at = c.at.between()
	before := c.at
	one := step{on: p.on, then: c.all(p.then)}
	then := c.at
	c.at = before
	one.instead = c.all(p.instead)
	both, alike := joined(then, c.at)
	if !alike {
		c.fail(p.line, "the branches of an {{if}} or {{with}} end in different places, %s and %s: each must close what it opens", then, c.at)
	}
	c.at = both
	return one
}

func (c *compiler) include(p part) []step {
	parts, ok := c.shared[p.text]
	switch {
	case !ok:
		c.fail(p.line, "there is no file %s to include; the name of one begins with _", p.text)
	case slices.Contains(c.open, beside(c.open[0], p.text)):
		c.fail(p.line, "%s includes itself", p.text)
	case len(c.open) > maxDepth:
		c.fail(p.line, "more than %d files in one another", maxDepth)
	}
	c.open = append(c.open, beside(c.open[0], p.text))
	c.at = c.at.between()
	steps := c.all(parts)
	c.open = c.open[:len(c.open)-1]
	return steps
}

// beside is a file in the folder of another.
func beside(file, name string) string { return file[:strings.LastIndexByte(file, '/')+1] + name }

// escape is how a field is written where it stands; nil = not at all, in a comment.
func (c *compiler) escape(p part) func(reflect.Value) string {
	at := &c.at
	switch {
	case at.at == inText, at.at == inRaw && (at.element == "title" || at.element == "textarea"):
		return inHTML
	case at.at == inComment:
		return nil
	case at.at == inQuotes:
		c.quoted(p)
		return inHTML
	case at.at == inRaw && at.element == "script" && at.script.state == inCode:
		at.script.slash = divides
		return asScript
	case at.at == inRaw && at.element == "script" && (at.script.state == inDouble || at.script.state == inSingle):
		return inScriptQuotes
	case at.at == inBareValue, at.at == beforeValue:
		c.fail(p.line, `.%s stands in a value without quotes: write %s="{{.%s}}"`, p.field, at.attr, p.field)
	case at.at == inRaw && at.element == "script":
		c.fail(p.line, ".%s stands in %s: set a variable at the begin of the script, var x = {{.%s}}, and use that", p.field, at, p.field)
	}
	c.fail(p.line, ".%s stands in %s: it can be shown in text, in a quoted value of an attribute, and in a script", p.field, at)
	return nil
}

// quoted refuses attributes whose values are more than text.
func (c *compiler) quoted(p part) {
	name := c.at.attr
	switch {
	case strings.HasPrefix(name, "on"), name == "style", name == "srcdoc":
		c.fail(p.line, ".%s stands in the attribute %s: put it into data-…, and read that in a script", p.field, name)
	case isAddress(name) && slices.Contains(freeText, p.field):
		c.fail(p.line, ".%s is free text, and no part of an address such as %s", p.field, name)
	case isAddress(name) && strings.ContainsAny(c.at.lead, ":&") && !c.at.leads():
		c.fail(p.line, ".%s stands in an address that does not begin with / or https://: what it says could become a script", p.field)
	}
}

// isAddress tells whether the value of an attribute is a URL.
func isAddress(attr string) bool {
	switch attr {
	case "action", "archive", "background", "cite", "classid", "codebase", "data", "formaction", "href", "icon", "longdesc", "manifest", "ping", "poster", "profile", "usemap", "xlink:href":
		return true
	}
	return !strings.HasPrefix(attr, "data-") && (strings.Contains(attr, "src") || strings.Contains(attr, "url") || strings.Contains(attr, "uri"))
}

// String says it to whoever wrote the page.
func (p place) String() string {
	switch p.at {
	case inText:
		return "text"
	case inComment:
		return "a comment"
	case inDeclaration:
		return "a declaration"
	case inQuotes, inBareValue, beforeValue:
		return "the value of " + strconv.Quote(p.attr)
	case inRaw:
		if p.element == "script" && p.script.state != inCode {
			return "a part of the script that is no code and no string"
		}
		return "a <" + p.element + ">"
	}
	return "a tag"
}

// render appends the page of v.
func (t *template) render(to []byte, v View) []byte {
	return appendSteps(to, t.steps, reflect.ValueOf(v))
}

func appendSteps(to []byte, steps []step, v reflect.Value) []byte {
	for i := range steps {
		s := &steps[i]
		switch {
		case s.field != "":
			to = append(to, s.escape(v.FieldByName(s.field))...)
		case s.on.field == "":
			to = append(to, s.text...)
		case s.on.holds(v):
			to = appendSteps(to, s.then, v)
		default:
			to = appendSteps(to, s.instead, v)
		}
	}
	return to
}

func (o *condition) holds(v reflect.Value) bool {
	field := v.FieldByName(o.field)
	if o.among == nil {
		return field.IsZero() == o.negate
	}
	return slices.Contains(o.among, textOf(field)) != o.negate
}

func textOf(v reflect.Value) string {
	switch v.Kind() {
	case reflect.String:
		return v.String()
	case reflect.Bool:
		return strconv.FormatBool(v.Bool())
	}
	return strconv.FormatInt(v.Int(), 10)
}
