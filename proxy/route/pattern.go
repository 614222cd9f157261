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

// Pattern is a compiled METHOD [HOST]/PATH, or METHOD|METHOD [HOST]/PATH. METHOD and HOST may be absent and then match
// all; GET also matches HEAD. A {name} stands for one segment, or for what is between literals in it ({sku}.html);
// {name...} at the end for the rest; and a path that ends in "/" for everything below it, as in net/http.ServeMux. A
// Pattern does not change and is safe for concurrent use.
type Pattern struct {
	text     string   // as configured
	methods  []string // nil = any
	host     string   // lower case, without port and final dot; "" = any
	path     string
	segments []segment // without {name...}
	open     bool      // the path ends in "/" or {name...}: anything may follow the segments and a slash
	rest     bool      // the path ends in {name...}
	names    []string
}

type segment struct {
	literal        string
	capture        bool   // a {name}: what is between prefix and suffix may be anything but empty
	prefix, suffix string // of a capture; "" = none
}

// part is what the {name} of s stands for in a segment of a path; ok is false where s does not take it.
func (s *segment) part(text []byte) (part []byte, ok bool) {
	begin, end := len(s.prefix), len(text)-len(s.suffix)
	if begin >= end || string(text[:begin]) != s.prefix || string(text[end:]) != s.suffix {
		return nil, false
	}
	return text[begin:end], true
}

// covers reports whether s takes each segment that q takes. It errs towards false.
func (s *segment) covers(q *segment) bool {
	if !s.capture || q.capture {
		return s.capture == q.capture && s.literal == q.literal && strings.HasPrefix(q.prefix, s.prefix) &&
			strings.HasSuffix(q.suffix, s.suffix)
	}
	_, ok := s.part([]byte(q.literal))
	return ok
}

// Names are the {names} in their order, which is the order of Match.Captures.
func (p Pattern) Names() []string { return p.names }

// Methods are those that the pattern names; nil = any.
func (p Pattern) Methods() []string { return p.methods }

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
		for method := range strings.SplitSeq(words[0], "|") {
			switch err := checkMethod(method); {
			case err != nil:
				return err
			case slices.Contains(p.methods, method):
				return fmt.Errorf("method %q stands twice: remove one", method)
			}
			p.methods = append(p.methods, method)
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
	case method == "":
		return errors.New(`a method is missing beside "|": write several like GET|POST`)
	case !octets.IsToken(method) || method[0] < 'A' || method[0] > 'Z' || strings.ContainsAny(method, "*+^"):
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
		return fmt.Errorf("%q is not a host name: write %q", host, strings.TrimSpace(strings.Join(p.methods, "|")+" /"+host+path))
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
		prefix, inside, found := strings.Cut(part, "{")
		if !found {
			p.segments = append(p.segments, segment{literal: part})
			continue
		}
		name, suffix, _ := strings.Cut(inside, "}")
		name, rest := strings.CutSuffix(name, "...")
		switch {
		case rest && prefix+suffix != "":
			return fmt.Errorf("%q: {%s...} stands for whole segments: write {%[2]s}", part, name)
		case rest && i != last:
			return fmt.Errorf("%q stands before the end: write {%s} for one segment", part, name)
		case suffix != "" && isName(suffix[:1]) && suffix[0] != '_':
			// "%5b" ends in "b" for a server that does not decode it, and for others it does not.
			return fmt.Errorf("%q: what follows a name begins with a mark such as . or -: write {%s} alone, or a mark "+
				"between", part, name)
		case slices.Contains(p.names, name):
			return fmt.Errorf("{%s} stands twice: give each segment a name of its own", name)
		case rest:
			p.open, p.rest = true, true
		default:
			p.segments = append(p.segments, segment{capture: true, prefix: prefix, suffix: suffix})
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
	case braces && strings.Count(part, "{") != strings.Count(part, "}"):
		return fmt.Errorf("%q: a brace is open: write a name as {name}", part)
	case strings.Count(part, "{") > 1 && !strings.Contains(part, "{{"):
		return fmt.Errorf("%q: a segment has one {name} at most: write a slash between two, or one name for both", part)
	case braces && !isName(nameIn(part)):
		return fmt.Errorf("%q: a name has letters, digits and _ alone: write one such as {sku}", part)
	}
	return nil
}

// nameIn is the name in the braces of a segment, without dots; "" = there is not one pair of braces.
func nameIn(part string) string {
	before, inside, _ := strings.Cut(part, "{")
	name, after, closed := strings.Cut(inside, "}")
	if !closed || strings.ContainsAny(before+after, "{}") {
		return ""
	}
	return strings.TrimSuffix(name, "...")
}

// covers reports whether p takes each request that q takes. It errs towards false.
func (p *Pattern) covers(q *Pattern) bool {
	n := len(p.segments)
	if !p.coversMethods(q) || p.host != "" && p.host != q.host || len(q.segments) < n {
		return false
	}
	for i, s := range p.segments {
		if !s.covers(&q.segments[i]) {
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
	return slices.Equal(p.methods, q.methods) && p.host == q.host && p.open != q.open && !p.rest && !q.rest &&
		slices.Equal(p.segments, q.segments)
}

// coversMethods reports whether p takes each method that q takes.
func (p *Pattern) coversMethods(q *Pattern) bool {
	return p.methods == nil || q.methods != nil && !slices.ContainsFunc(q.methods,
		func(m string) bool { return !slices.Contains(p.methods, m) })
}

const nameBytes = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_"

func isName(s string) bool { return s != "" && strings.Trim(s, nameBytes) == "" }
