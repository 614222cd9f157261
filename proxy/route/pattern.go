package route

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"sluice/internal/octets"
)

// maxCaptures bounds the {names} of one pattern, so that a match needs no allocation.
const maxCaptures = 8

// maxSegments bounds the segments of one pattern, so that a set of them fits one word.
const maxSegments = 32

// Pattern is a compiled METHOD [HOST]/PATH. METHOD and HOST may be absent and then match all; GET also matches HEAD.
// A {name} stands for one segment, {name...} at the end for the rest, and a path that ends in "/" stands for everything
// below it, as in net/http.ServeMux. A Pattern does not change and is safe for concurrent use.
type Pattern struct {
	text     string // as configured
	method   string // "" = any
	host     string // lower case, without port and final dot; "" = any
	path     string
	segments []segment // without {name...}
	open     bool      // the path ends in "/" or {name...}: anything may follow the segments and a slash
	rest     bool      // the path ends in {name...}
	names    []string
}

type segment struct {
	literal string
	capture bool // a {name}: the segment may be anything but empty
}

// Names are the {names} in their order, which is the order of Match.Captures.
func (p Pattern) Names() []string { return p.names }

// Method is the method that the pattern names; "" = any.
func (p Pattern) Method() string { return p.method }

// Path is the path with the {names} in it. Logs write it in place of a path that holds a secret.
func (p Pattern) Path() string { return p.path }

// String is the pattern as it was written.
func (p Pattern) String() string { return p.text }

// ParsePattern compiles METHOD [HOST]/PATH. Its errors have the form `"pattern": what: how to fix it`. They show the
// whole pattern in our notation where the text is one in the notation of another router.
func ParsePattern(text string) (Pattern, error) {
	p := Pattern{text: text}
	err := p.parse()
	if err == nil {
		return p, nil
	}
	if s := suggest(text); s != "" {
		what, _, _ := strings.Cut(err.Error(), ": write ")
		err = fmt.Errorf("%s: write %q", what, s)
		if strings.HasSuffix(s, "/") && strings.Contains(text, "*") {
			err = fmt.Errorf("%w for everything below, or %q", err, s+"{name...}")
		}
	}
	return p, fmt.Errorf("%q: %w", text, err)
}

func (p *Pattern) parse() error {
	words := strings.Fields(p.text)
	if n := len(words); n == 0 || n > 2 {
		return fmt.Errorf(`%d words: write METHOD [HOST]/PATH, such as "POST /order/{sku}"`, n)
	}
	target := words[len(words)-1]
	if len(words) == 2 {
		p.method = words[0]
		if err := checkMethod(p.method); err != nil {
			return err
		}
	}
	if strings.ContainsAny(target, "^$()[]+|") {
		return errors.New(`regular expressions match nothing: write {name} for a segment, "/" at the end for the rest`)
	}
	slash := strings.IndexByte(target, '/')
	if slash < 0 {
		slash = len(target)
	}
	if err := p.parseHost(target[:slash], target[slash:]); err != nil {
		return err
	}
	p.path = target[slash:]
	return p.parsePath()
}

// checkMethod reports a word that no request has as its method.
func checkMethod(method string) error {
	upper := strings.ToUpper(method)
	switch {
	case slices.Contains(anyMethods, upper):
		return fmt.Errorf("%q is not a method: write none for all methods", method)
	case strings.HasPrefix(method, "/"):
		return fmt.Errorf("%q is not a method: write the method first, such as \"POST /order/{sku}\"", method)
	case upper != method:
		return fmt.Errorf("method %q is in lower case: write %q", method, upper)
	case !octets.IsToken(method) || method[0] < 'A' || method[0] > 'Z' || strings.ContainsAny(method, "|*+^"):
		return fmt.Errorf("%q is not a method: write one such as POST, or none for all", method)
	}
	return nil
}

func (p *Pattern) parseHost(host, path string) error {
	p.host = strings.ToLower(strings.TrimSuffix(host, "."))
	switch {
	case host == "":
		return nil
	case strings.HasPrefix(path, "//"):
		return fmt.Errorf("%q is not part of a pattern: write the host alone, such as %q", host+"//", path[2:])
	case strings.Contains(host, ":"):
		return fmt.Errorf("host %q has a port: a pattern takes all ports, write it without", host)
	case !strings.Contains(p.host, ".") && p.host != "localhost":
		return fmt.Errorf("%q is not a host name: write %q", host, strings.TrimSpace(p.method+" /"+host+path))
	case path == "":
		return fmt.Errorf("the path is missing: write %q for everything on this host", p.text+"/")
	case strings.Contains(host, "*"):
		return fmt.Errorf(`host %q: "*" matches nothing: write one route for each host, or none for all hosts`, host)
	}
	if odd := strings.Trim(p.host, nameBytes+".-"); odd != "" {
		return fmt.Errorf("host %q: %q is not part of a host name: remove it", host, odd[:1])
	}
	return nil
}

func (p *Pattern) parsePath() error {
	parts := strings.Split(p.path[1:], "/")
	last := len(parts) - 1
	if parts[last] == "" {
		p.open, parts = true, parts[:last]
	}
	for i, part := range parts {
		if err := checkSegment(part); err != nil {
			return err
		}
		if part[0] != '{' {
			p.segments = append(p.segments, segment{literal: part})
			continue
		}
		name, rest := strings.CutSuffix(part[1:len(part)-1], "...")
		switch {
		case rest && i != last:
			return fmt.Errorf("%q stands before the end: write {%s} for one segment", part, name)
		case slices.Contains(p.names, name):
			return fmt.Errorf("{%s} stands twice: give each segment a name of its own", name)
		case rest:
			p.open, p.rest = true, true
		default:
			p.segments = append(p.segments, segment{capture: true})
		}
		p.names = append(p.names, name)
	}
	if len(p.names) > maxCaptures || len(p.segments) > maxSegments {
		return fmt.Errorf("%d {names} in %d segments: write at most %d in %d",
			len(p.names), len(p.segments), maxCaptures, maxSegments)
	}
	return nil
}

// checkSegment reports what is wrong with one segment of a pattern, by the habits of other routers.
func checkSegment(part string) error {
	braces := strings.ContainsAny(part, "{}")
	switch {
	case part == "" || part == "." || part == ".." || part == "...":
		return fmt.Errorf("segment %q matches nothing: remove it", part)
	case part[0] == ':' || part[0] == '<':
		return fmt.Errorf("%q stands for itself alone: write {%s}", part, strings.Trim(part, ":<>"))
	case strings.Contains(part, "*"):
		return errors.New(`"*" matches nothing: write {name} for the whole segment`)
	case strings.ContainsAny(part, "?#%;\\"):
		return fmt.Errorf("%q matches nothing: write the path decoded, without parameters and query", part)
	case strings.ContainsFunc(part, func(c rune) bool { return c < ' ' || c > '~' }):
		return fmt.Errorf("%q matches nothing, since paths arrive percent-encoded: write {name}", part)
	case braces && (part[0] != '{' || part[len(part)-1] != '}'):
		return fmt.Errorf("%q: a {name} is a whole segment: write it between slashes", part)
	case braces && !isName(strings.TrimSuffix(part[1:len(part)-1], "...")):
		return fmt.Errorf("%q: a name has letters, digits and _ alone: write one such as {sku}", part)
	}
	return nil
}

// covers reports whether p takes each request that q takes. It errs towards false.
func (p *Pattern) covers(q *Pattern) bool {
	n := len(p.segments)
	if p.method != "" && p.method != q.method || p.host != "" && p.host != q.host || len(q.segments) < n {
		return false
	}
	for i, s := range p.segments {
		if !s.capture && s != q.segments[i] {
			return false
		}
	}
	if p.open {
		return q.open || len(q.segments) > n
	}
	return !q.open && len(q.segments) == n
}

// differsBySlash reports that the two patterns take the same paths but for the slash at their end, and what may follow
// it: one is the route of the one spelling, the other that of the other.
func (p *Pattern) differsBySlash(q *Pattern) bool {
	return p.method == q.method && p.host == q.host && p.open != q.open && !p.rest && !q.rest &&
		slices.Equal(p.segments, q.segments)
}

const nameBytes = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_"

func isName(s string) bool { return s != "" && strings.Trim(s, nameBytes) == "" }
