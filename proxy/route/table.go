package route

import (
	"bytes"

	"sluice/internal/octets"
	"sluice/proxy/reject"
)

// Table is the routes in their order. It does not change and is safe for concurrent use.
type Table struct {
	entries []entry
	guarded bool // some route is
	slash   bool // so is one whose pattern ends in a slash that servers may leave out
}

// entry is one route, made ready to be compared.
type entry struct {
	Pattern
	guard    Guard
	advice   string // of the rejection of what could be a request of this route
	literals uint64 // bit i: segment i is a literal
	captures uint64 // bit i: segment i is a {name}
	affixed  uint64 // bit i: segment i is a {name} with a literal before or behind it
	script   bool   // a segment is the name of a PHP script
}

// NewTable makes a table of routes. The guard of patterns[i] is guards[i].
func NewTable(patterns []Pattern, guards []Guard) *Table {
	t := &Table{entries: make([]entry, len(patterns))}
	for i, p := range patterns {
		e := entry{Pattern: p, guard: guards[i], advice: "write it as " + p.text + " does"}
		for j, s := range p.segments {
			e.script = e.script || isScript([]byte("/"+s.literal)) || isScript([]byte("/x"+s.suffix))
			if s.capture {
				e.captures |= 1 << j
				if s.prefix+s.suffix != "" {
					e.affixed |= 1 << j
				}
			} else {
				e.literals |= 1 << j
			}
		}
		t.entries[i] = e
		t.guarded = t.guarded || e.guard > Unguarded
		t.slash = t.slash || e.guard > Unguarded && e.open && len(e.segments) > 0
	}
	return t
}

// CoveredBy returns the first route before route i that takes every request of it: route i never matches.
// It returns -1 when there is none. It errs towards -1.
func (t *Table) CoveredBy(i int) int {
	for j := range i {
		if t.entries[j].covers(&t.entries[i].Pattern) {
			return j
		}
	}
	return -1
}

// Query is what of a request selects its route.
type Query struct {
	Method []byte
	Host   []byte // as HostName writes it
	Path   []byte // as received, without the query

	// OverrideMethods and OverridePaths are the values of the fields that ask to take the request for another:
	// X-HTTP-Method-Override, X-HTTP-Method, X-Method-Override; X-Original-URL, X-Rewrite-URL.
	OverrideMethods, OverridePaths [][]byte
}

// Match is the route of a request.
type Match struct {
	Index    int                 // in the table; -1 = no route takes the request
	Captures [maxCaptures][]byte // what the {names} stand for, as received; parts of Query.Path
}

// Match finds the first route that takes a request by method, host and path as received. If detail has a cause, the
// request is ambiguous: the upstream could take it for one of another route that is guarded, or the other way round, or
// on a route that guards stock for one of other captures. Index is then the guarded route, and Captures are empty. Match
// does not allocate.
func (t *Table) Match(q Query) (m Match, detail reject.Detail) {
	m = t.first(q.Method, q.Host, q.Path)
	if !t.guarded {
		return m, detail
	}
	if !isPlain(q.Path) || t.slash && t.lacksSlash(q.Path) {
		if i := t.ambiguity(q.Method, q.Host, q.Path, m.Index, GuardsEntry); i >= 0 {
			return Match{Index: i}, reject.Detail{Cause: reject.PathNotCanonical, Operand: t.entries[i].advice}
		}
	}
	if len(q.OverrideMethods)+len(q.OverridePaths) > 0 {
		if i := t.override(&q, m.Index); i >= 0 {
			return Match{Index: i}, reject.Detail{Cause: reject.MethodOverride}
		}
	}
	return m, detail
}

// TargetsStock reports whether a request for target, a path and perhaps a query, could be one of a route that guards
// stock, on any host: a link to it could place an order.
func (t *Table) TargetsStock(method, target []byte) bool {
	return t.ambiguity(method, nil, pathOf(target), -1, GuardsStock) >= 0
}

// lacksSlash reports whether a guarded route would take the path with a slash at its end.
func (t *Table) lacksSlash(path []byte) bool {
	var captures [maxCaptures][]byte
	for i := range t.entries {
		if e := &t.entries[i]; e.guard > Unguarded && e.open && len(e.segments) > 0 {
			if rest, _, ok := e.cutSegments(path, &captures); ok && len(rest) == 0 {
				return true
			}
		}
	}
	return false
}

// SafeMethod reports a method that asks for nothing but to read (RFC 9110, section 9.2.1), among those that browsers
// send for a link.
func SafeMethod(method []byte) bool { return string(method) == "GET" || string(method) == "HEAD" }

// first returns the first route that takes the path by its bytes.
func (t *Table) first(method, host, path []byte) (m Match) {
	for i := range t.entries {
		if e := &t.entries[i]; e.takesMethod(method) && e.takesHost(host) && e.takesPath(path, &m.Captures) {
			m.Index = i
			return m
		}
	}
	return Match{Index: -1}
}

// takesMethod ignores case, as servers do that write methods in capitals. A nil method stands for any.
func (e *entry) takesMethod(method []byte) bool {
	if e.methods == nil || method == nil {
		return true
	}
	for _, m := range e.methods {
		if octets.EqualFold(method, m) || m == "GET" && octets.EqualFold(method, "HEAD") {
			return true
		}
	}
	return false
}

// takesHost compares names as HostName writes them. A nil host stands for any.
func (e *entry) takesHost(host []byte) bool {
	return e.host == "" || host == nil || e.host == string(host)
}

func (e *entry) takesPath(path []byte, captures *[maxCaptures][]byte) bool {
	rest, n, ok := e.cutSegments(path, captures)
	switch {
	case !ok || !e.open:
		return ok && len(rest) == 0
	case len(rest) == 0 || rest[0] != '/':
		return false
	case e.rest:
		captures[n] = rest[1:]
	}
	return true
}

// cutSegments cuts the segments of the pattern off path. The first n captures are what its {names} stand for.
func (e *entry) cutSegments(path []byte, captures *[maxCaptures][]byte) (rest []byte, n int, ok bool) {
	for i := range e.segments {
		if len(path) == 0 || path[0] != '/' {
			return nil, 0, false
		}
		end := bytes.IndexByte(path[1:], '/') + 1
		if end == 0 {
			end = len(path)
		}
		if text, s := path[1:end], &e.segments[i]; s.capture {
			part, ok := s.part(text)
			if !ok {
				return nil, 0, false
			}
			captures[n] = part
			n++
		} else if string(text) != s.literal {
			return nil, 0, false
		}
		path = path[end:]
	}
	return path, n, true
}
