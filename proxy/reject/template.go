package reject

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"sluice/config"
)

// template is a text with $placeholders and conditional blocks, cut into parts:
//
//	$title                            the value, escaped for the format
//	<!-- if waits --> … <!-- end -->  only under this condition; also <!-- if not waits -->
//	$$                                a dollar sign; so is a "$" in front of anything but a letter or "_"
type template []part

// part is text, and what follows it.
type part struct {
	text   string
	kind   partKind
	name   string // of the placeholder or condition
	negate bool   // of the condition
}

type partKind uint8

const (
	textPart partKind = iota
	valuePart
	ifPart
	endPart
)

// vocabulary is what a template may name.
type vocabulary struct{ placeholders, conditions []string }

var marks = regexp.MustCompile(`\$(\$|[A-Za-z_][A-Za-z0-9_]*)|<!--\s*(if|end)\b([^<>]*)-->`)

// parse reads a template. Each error begins with name and the line.
func parse(name, text string, v vocabulary) (t template, err error) {
	fail := func(at int, format string, args ...any) error {
		return fmt.Errorf("%s:%d: %s", name, 1+strings.Count(text[:at], "\n"), fmt.Sprintf(format, args...))
	}
	if at := strings.Index(text, "{{."); at >= 0 {
		return nil, fail(at, "{{.Title}} is not supported; write $title")
	}
	var open []int // where the blocks around begin
	begin := 0
	for _, m := range marks.FindAllStringSubmatchIndex(text, -1) {
		at, end := m[0], m[1]
		p := part{text: text[begin:at]}
		begin = end
		switch {
		case m[2] >= 0 && text[m[2]:m[3]] == "$":
			p.text += "$"
		case m[2] >= 0:
			p.kind, p.name = valuePart, text[m[2]:m[3]]
			if !slices.Contains(v.placeholders, p.name) {
				return nil, fail(at, "$%s is not known; %s A dollar sign is $$", p.name, suggest("$", p.name, v.placeholders))
			}
		case text[m[4]:m[5]] == "end":
			if len(open) == 0 || strings.TrimSpace(text[m[6]:m[7]]) != "" {
				return nil, fail(at, "<!-- end --> closes no block")
			}
			p.kind, open = endPart, open[:len(open)-1]
		default:
			p.kind, open = ifPart, append(open, at)
			p.name, p.negate = strings.CutPrefix(strings.TrimSpace(text[m[6]:m[7]]), "not ")
			p.name = strings.TrimSpace(p.name)
			if !slices.Contains(v.conditions, p.name) {
				return nil, fail(at, "condition %q is not known; %s", p.name, suggest("", p.name, v.conditions))
			}
		}
		t = append(t, p)
	}
	if len(open) > 0 {
		return nil, fail(open[len(open)-1], "the block has no <!-- end -->")
	}
	return append(t, part{text: text[begin:]}), nil
}

// body fills in values, which are escaped already, and conditions. What they lack differs from request to request and
// becomes a field.
func (t template) body(values map[string]string, conditions map[string]bool) body {
	var a assembler
	for _, p := range t {
		if a.hidden == 0 {
			a.text = append(a.text, p.text...)
		}
		switch p.kind {
		case valuePart:
			if value, fixed := values[p.name]; fixed && a.hidden == 0 {
				a.text = append(a.text, value...)
			} else if a.hidden == 0 {
				a.add(segment{field: fields[p.name]})
			}
		case ifPart:
			holds, fixed := conditions[p.name]
			a.begin(segment{field: fields[p.name], negate: p.negate}, fixed, holds)
		case endPart:
			a.end()
		}
	}
	a.flush()
	return a.out
}

// assembler puts a body together.
type assembler struct {
	out    body
	text   []byte // that is not yet in out
	open   []int  // segments of the blocks around that depend on the request; -1 = included in any case
	hidden int    // blocks around that are left out
}

func (a *assembler) flush() {
	if len(a.text) > 0 {
		a.out, a.text = append(a.out, segment{text: a.text}), nil
	}
}

func (a *assembler) add(s segment) {
	a.flush()
	a.out = append(a.out, s)
}

// begin begins a block; s is its condition, fixed reports that the condition holds, or not, for every request.
func (a *assembler) begin(s segment, fixed, holds bool) {
	switch {
	case a.hidden > 0 || fixed && holds == s.negate:
		a.hidden++
	case fixed:
		a.open = append(a.open, -1)
	default:
		a.add(s)
		a.open = append(a.open, len(a.out)-1)
	}
}

func (a *assembler) end() {
	if a.hidden > 0 {
		a.hidden--
		return
	}
	last := len(a.open) - 1
	if at := a.open[last]; at >= 0 {
		a.flush()
		a.out[at].conditional, a.out[at].block = true, len(a.out)-1-at
	}
	a.open = a.open[:last]
}

// suggest names the known word that is closest to an unknown one, or else all of them.
func suggest(prefix, unknown string, known []string) string {
	if near := config.Nearest(unknown, known); near != "" {
		return "did you mean " + prefix + near + "?"
	}
	return "write one of " + prefix + strings.Join(known, " "+prefix) + "."
}
