package openapi

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// line is one that is not empty, without its indent.
type line struct {
	indent int
	text   string
	number int
}

// reader reads blocks of lines.
type reader struct {
	lines []line
	at    int
}

// parse reads the YAML that our description is written in: blocks of "key: value", of "- item", flow lists and maps,
// folded text, and plain or double-quoted scalars. Anything else is an error, and not guessed at.
func parse(text string) (any, error) {
	r := &reader{}
	for i, l := range strings.Split(text, "\n") {
		trimmed := strings.TrimLeft(l, " ")
		if trimmed != "" && trimmed[0] != '#' {
			r.lines = append(r.lines, line{len(l) - len(trimmed), strings.TrimRight(trimmed, " "), i + 1})
		}
	}
	if len(r.lines) == 0 {
		return nil, errors.New("nothing in it")
	}
	v, err := r.block(r.lines[0].indent)
	if err == nil && r.at < len(r.lines) {
		err = r.wrong("is indented less than what it belongs to")
	}
	return v, err
}

func (r *reader) wrong(what string) error {
	l := r.lines[min(r.at, len(r.lines)-1)]
	return fmt.Errorf("line %d: %q %s", l.number, l.text, what)
}

// block reads the lines of one indent.
func (r *reader) block(indent int) (any, error) {
	if strings.HasPrefix(r.lines[r.at].text, "- ") {
		return r.items(indent)
	}
	m := map[string]any{}
	for r.at < len(r.lines) && r.lines[r.at].indent == indent {
		key, rest, ok := cutKey(r.lines[r.at].text)
		if !ok {
			return nil, r.wrong("is no \"key: value\"")
		}
		if _, twice := m[key]; twice {
			return nil, r.wrong("is there twice")
		}
		v, err := r.value(indent, rest)
		if err != nil {
			return nil, err
		}
		m[key] = v
	}
	if r.at < len(r.lines) && r.lines[r.at].indent > indent {
		return nil, r.wrong("is indented more than its neighbours")
	}
	return m, nil
}

// value reads what stands behind a key: on the line, or below it.
func (r *reader) value(indent int, rest string) (any, error) {
	folded := rest == ">-"
	if rest != "" && !folded {
		v, err := inFlow(rest)
		if err != nil {
			return nil, r.wrong(err.Error())
		}
		r.at++
		return v, nil
	}
	r.at++
	if r.at == len(r.lines) || r.lines[r.at].indent <= indent {
		return nil, nil
	}
	if !folded {
		return r.block(r.lines[r.at].indent)
	}
	var words []string
	for r.at < len(r.lines) && r.lines[r.at].indent > indent {
		words = append(words, r.lines[r.at].text)
		r.at++
	}
	return strings.Join(words, " "), nil
}

// items reads "- item" lines, each of one value in flow style.
func (r *reader) items(indent int) (any, error) {
	list := []any{}
	for r.at < len(r.lines) && r.lines[r.at].indent == indent {
		rest, ok := strings.CutPrefix(r.lines[r.at].text, "- ")
		if !ok {
			return nil, r.wrong("is no item of the list above")
		}
		v, err := itemOf(rest)
		if err != nil {
			return nil, r.wrong(err.Error())
		}
		list = append(list, v)
		r.at++
	}
	return list, nil
}

func itemOf(text string) (any, error) {
	if key, rest, ok := cutKey(text); ok && text[0] != '{' && text[0] != '[' && text[0] != '"' {
		v, err := inFlow(rest)
		return map[string]any{key: v}, err
	}
	return inFlow(text)
}

// cutKey cuts "key: rest" or "key:".
func cutKey(text string) (key, rest string, ok bool) {
	if strings.HasPrefix(text, `"`) {
		end := strings.Index(text[1:], `"`)
		if end < 0 || !strings.HasPrefix(text[end+2:], ":") {
			return "", "", false
		}
		return text[1 : end+1], strings.TrimSpace(text[end+3:]), true
	}
	if strings.HasSuffix(text, ":") && !strings.Contains(text, ": ") {
		return strings.TrimSuffix(text, ":"), "", true
	}
	key, rest, ok = strings.Cut(text, ": ")
	return key, strings.TrimSpace(rest), ok
}

// inFlow reads one value on one line.
func inFlow(text string) (any, error) {
	f := flow{text: text}
	if text == "" {
		return nil, errors.New("has no value")
	}
	if text[0] != '{' && text[0] != '[' && text[0] != '"' {
		return plain(text), nil // up to the end of the line, commas and all
	}
	v, err := f.value()
	if err == nil && strings.TrimSpace(f.text) != "" {
		err = fmt.Errorf("has %q behind its value", f.text)
	}
	return v, err
}

// flow is what is left of a line.
type flow struct{ text string }

func (f *flow) value() (any, error) {
	f.text = strings.TrimLeft(f.text, " ")
	switch {
	case f.text == "":
		return nil, errors.New("ends too early")
	case f.text[0] == '[':
		list := []any{}
		err := f.each(']', func() error {
			v, err := f.value()
			list = append(list, v)
			return err
		})
		return list, err
	case f.text[0] == '{':
		m := map[string]any{}
		err := f.each('}', func() error {
			key, err := f.value()
			f.text = strings.TrimLeft(f.text, " ")
			if err != nil || !strings.HasPrefix(f.text, ":") {
				return errors.New("has a key without a value")
			}
			f.text = f.text[1:]
			m[fmt.Sprint(key)], err = f.value()
			return err
		})
		return m, err
	case f.text[0] == '"':
		quoted, err := strconv.QuotedPrefix(f.text)
		if err != nil {
			return nil, errors.New("has an open quote")
		}
		f.text = f.text[len(quoted):]
		return strconv.Unquote(quoted)
	}
	end := strings.IndexAny(f.text+",", ",]}")
	if colon := strings.Index(f.text[:end], ": "); colon >= 0 {
		end = colon
	}
	word := f.text[:end]
	f.text = f.text[end:]
	return plain(strings.TrimSpace(word)), nil
}

// each calls one for each element up to the closing bracket.
func (f *flow) each(closing byte, one func() error) error {
	f.text = strings.TrimLeft(f.text[1:], " ")
	for f.text != "" && f.text[0] != closing {
		if err := one(); err != nil {
			return err
		}
		f.text = strings.TrimLeft(f.text, " ")
		if strings.HasPrefix(f.text, ",") {
			f.text = strings.TrimLeft(f.text[1:], " ")
		} else if f.text == "" || f.text[0] != closing {
			return fmt.Errorf("has %q where a comma belongs", f.text)
		}
	}
	if f.text == "" {
		return errors.New("has an open bracket")
	}
	f.text = f.text[1:]
	return nil
}

// plain is a scalar without quotes.
func plain(text string) any {
	switch text {
	case "true":
		return true
	case "false":
		return false
	case "null":
		return nil
	}
	if n, err := strconv.ParseFloat(text, 64); err == nil {
		return n
	}
	return text
}
