package proxy

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
)

// maxCaptures bounds the {names} of one pattern, so that a match needs no allocation.
const maxCaptures = 8

// pattern is a compiled `METHOD [HOST]/PATH`. METHOD and HOST may be left out and then match all;
// GET also matches HEAD. A {name} stands for one segment, {name...} at the end for the rest,
// and a path that ends in "/" stands for everything below it, as in net/http.ServeMux.
type pattern struct {
	method   string // "" = any
	host     string // lower case, without port; "" = any
	segments []segment
	subtree  bool // the path ends in "/": anything may follow
	names    []string
}

type segment struct {
	literal string
	capture bool
	rest    bool // {name...}
}

func parsePattern(text string) (pattern, error) {
	var p pattern
	target := text
	if method, rest, ok := strings.Cut(text, " "); ok {
		if !knownMethod(method) {
			return p, fmt.Errorf("unknown method %q; one of GET HEAD POST PUT PATCH DELETE OPTIONS, or none for all", method)
		}
		p.method, target = method, strings.TrimLeft(rest, " ")
	}
	slash := strings.IndexByte(target, '/')
	if slash < 0 {
		return p, errors.New(`no path; write METHOD [HOST]/PATH, such as "POST /order/{sku}"`)
	}
	p.host = strings.ToLower(strings.TrimSuffix(target[:slash], "."))
	if strings.ContainsAny(p.host, ":{} ") {
		return p, fmt.Errorf("host %q: a plain name without port or braces is needed", p.host)
	}
	return p, p.parsePath(target[slash:])
}

func (p *pattern) parsePath(path string) error {
	if i := strings.IndexAny(path, "?#%;\\ "); i >= 0 {
		return fmt.Errorf("path %q: %q cannot be matched; patterns are written decoded and without a query", path, path[i])
	}
	parts := strings.Split(path[1:], "/")
	if last := len(parts) - 1; parts[last] == "" {
		p.subtree = true
		parts = parts[:last]
	}
	for i, part := range parts {
		s, err := parseSegment(part)
		if err != nil {
			return err
		}
		if s.rest && (i != len(parts)-1 || p.subtree) {
			return fmt.Errorf("{%s...} must be the last part of the path", s.literal)
		}
		if s.capture {
			for _, name := range p.names {
				if name == s.literal {
					return fmt.Errorf("{%s} stands twice", name)
				}
			}
			p.names = append(p.names, s.literal)
		}
		p.segments = append(p.segments, s)
	}
	if len(p.names) > maxCaptures {
		return fmt.Errorf("%d names in braces; at most %d", len(p.names), maxCaptures)
	}
	return nil
}

func parseSegment(part string) (segment, error) {
	switch {
	case part == "" || part == "." || part == "..":
		return segment{}, fmt.Errorf("path part %q can never match", part)
	case !strings.ContainsAny(part, "{}"):
		return segment{literal: part}, nil
	case part[0] != '{' || part[len(part)-1] != '}':
		return segment{}, fmt.Errorf("%q: a name in braces must be a whole part of the path", part)
	}
	name, rest := strings.CutSuffix(part[1:len(part)-1], "...")
	if !isName(name) {
		return segment{}, fmt.Errorf("%q: a name of letters, digits and _ is needed in the braces", part)
	}
	return segment{literal: name, capture: true, rest: rest}, nil
}

// captures holds what the {names} of the matched pattern stood for, in their order.
type captures [maxCaptures][]byte

// matches reports whether the pattern takes a request, and fills caught. With fold, letter case does
// not matter, nor a slash at the end: the form in which a lenient shop might still see this route.
func (p *pattern) matches(method, host, path []byte, caught *captures, fold bool) bool {
	return p.takesMethod(method) && (p.host == "" || p.host == string(host)) && p.matchesPath(path, caught, fold)
}

func (p *pattern) takesMethod(method []byte) bool {
	return p.method == "" || p.method == string(method) || p.method == "GET" && string(method) == "HEAD"
}

func (p *pattern) matchesPath(path []byte, caught *captures, fold bool) bool {
	n := 0
	for _, s := range p.segments {
		if len(path) == 0 || path[0] != '/' {
			return false
		}
		path = path[1:]
		if s.rest {
			caught[n] = path
			return true
		}
		end := bytes.IndexByte(path, '/')
		if end < 0 {
			end = len(path)
		}
		part := path[:end]
		switch {
		case s.capture && len(part) > 0:
			caught[n] = part
			n++
		case s.capture:
			return false
		case fold && !equalFold(part, s.literal), !fold && string(part) != s.literal:
			return false
		}
		path = path[end:]
	}
	if p.subtree {
		return len(path) > 0 || fold
	}
	return len(path) == 0 || fold && string(path) == "/"
}

// name returns the index of a {name} of the pattern.
func (p *pattern) name(name string) (int, bool) {
	for i, n := range p.names {
		if n == name {
			return i, true
		}
	}
	return 0, false
}

func equalFold(b []byte, s string) bool {
	if len(b) != len(s) {
		return false
	}
	for i, c := range b {
		if lower(c) != lower(s[i]) {
			return false
		}
	}
	return true
}

func lower(c byte) byte {
	if 'A' <= c && c <= 'Z' {
		return c | 0x20
	}
	return c
}

func knownMethod(m string) bool {
	switch m {
	case "GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS":
		return true
	}
	return false
}

func isName(s string) bool {
	for i := range len(s) {
		if c := s[i]; c != '_' && (c < '0' || c > '9') && (lower(c) < 'a' || lower(c) > 'z') {
			return false
		}
	}
	return s != ""
}
