package route

import (
	"bytes"

	"sluice/internal/octets"
	"sluice/proxy/param"
)

// Servers tidy paths before they route: they decode escapes, once or more; take "\" for "/"; drop parameters behind
// ";", tabs, empty segments and "."; take two slashes at the start for those before an authority; resolve ".."; ignore
// case and a slash at the end; PHP's take what follows a script, as in "/index.php/order/1". Which of it the upstream
// does is unknown; package readings lists who does. A path is canonical where none of it changes the number of the
// segments or their ends.

const (
	maxPath = 8 << 10 // bytes of a path that are looked into
	maxOdd  = 32      // places in a path where its reading is open
	// maxScripts is how many scripts of a path are looked behind; with more it could be any path.
	maxScripts = 2
)

// canonicalPath is a path with its escapes undone, and how far it is from canonical.
type canonicalPath struct {
	// text keeps each "/" that was received as one. An escaped "/" is a "\" here, since both may separate segments.
	text      []byte
	odd       int  // "\", ";", "?", "#", tabs, empty and "." segments; but not an empty one at the end
	clean     int  // segments before the first of them
	authority bool // it may begin with an authority, which also names a host
	nested    bool // an escape is part of another one, so that it matters how often a server decodes
	unbounded bool // a "..", or more than is looked into: it could be any path
}

// isPlain reports a path that is canonical at the first look: no escape, capital, slash at the end, segment that begins
// with a dot, script before a path, or any other odd byte.
func isPlain(path []byte) bool {
	last := byte(0)
	for i, c := range path {
		switch {
		case notPlain[c]:
			return false
		case last == '/' && (c == '/' || c == '.'), c == '/' && isScript(path[:i]):
			return false
		}
		last = c
	}
	return last != '/' || len(path) == 1
}

// notPlain are the bytes that no path has which is canonical at the first look.
var notPlain = func() (set [256]bool) {
	for _, c := range []byte(`%;\?#ABCDEFGHIJKLMNOPQRSTUVWXYZ`) {
		set[c] = true
	}
	return set
}()

// ambiguity returns a route with the least guard that some reading of path leads to, or own where it guards stock and
// some reading leads away from it; -1 when there is none. Own is the route of the path as received, or -1. A nil method,
// host or path stands for any.
func (t *Table) ambiguity(method, host, path []byte, own int, least Guard) int {
	if bytes.IndexByte(path, '%') < 0 || len(path) > maxPath {
		return t.scripted(method, host, path, false, own, least)
	}
	return t.decodedAmbiguity(method, host, path, own, least)
}

// decodedAmbiguity is apart from ambiguity since its stack frame has room for a whole path.
func (t *Table) decodedAmbiguity(method, host, path []byte, own int, least Guard) int {
	var room [maxPath]byte
	text, nested := decode(room[:0], path)
	return t.scripted(method, host, text, nested, own, least)
}

// scripted is ambiguity of a decoded path, and of each script in it: a server may run the script, and what follows is
// the path of a PHP application (CGI's PATH_INFO, RFC 3875, section 4.1.5). A route that guards stock and names a
// script takes such a path as it stands.
func (t *Table) scripted(method, host, text []byte, nested bool, own int, least Guard) int {
	i := t.other(method, host, examine(text, nested), own, least)
	if i >= 0 || t.guardsStock(own) && t.entries[own].script {
		return i
	}
	scripts := 0
	for i, c := range text {
		if c != '/' && c != '\\' || !isScript(text[:i]) {
			continue
		}
		if scripts++; scripts > maxScripts {
			return t.other(method, host, canonicalPath{text: text, unbounded: true}, -1, least)
		}
		if i := t.byScript(method, host, text, i, nested, own, least); i >= 0 {
			return i
		}
	}
	return -1
}

// byScript is ambiguity of a script, but where own names one, and of what follows it, by itself and in the folder of
// the script: an application knows its folder, or it does not.
func (t *Table) byScript(method, host, text []byte, end int, nested bool, own int, least Guard) int {
	if own < 0 || !t.entries[own].script {
		if i := t.reading(method, host, text[:end], nested, own, least); i >= 0 {
			return i
		}
	}
	if i := t.reading(method, host, text[end:], nested, own, least); i >= 0 {
		return i
	}
	folder := bytes.LastIndexAny(text[:end], `/\`)
	if folder <= 0 {
		return -1
	}
	var room [maxPath]byte
	return t.reading(method, host, append(append(room[:0], text[:folder]...), text[end:]...), nested, own, least)
}

// reading is ambiguity of a path that the decoded one may stand for. Own remains its route where it takes both alike.
func (t *Table) reading(method, host, text []byte, nested bool, own int, least Guard) int {
	if own >= 0 && !t.entries[own].takesAlike(text) {
		own = -1
	}
	return t.other(method, host, examine(text, nested), own, least)
}

// takesAlike reports whether the entry takes the path by its bytes, too, and nothing depends on its captures.
func (e *entry) takesAlike(path []byte) bool {
	if e.guard == GuardsStock && (e.captures != 0 || e.rest) {
		return false
	}
	for i := range e.segments { // as cutSegments, of whose captures path would be a part
		if len(path) == 0 || path[0] != '/' {
			return false
		}
		end := bytes.IndexByte(path[1:], '/') + 1
		if end == 0 {
			end = len(path)
		}
		s := &e.segments[i]
		if _, ok := s.part(path[1:end]); s.capture && !ok || !s.capture && string(path[1:end]) != s.literal {
			return false
		}
		path = path[end:]
	}
	return !e.open && len(path) == 0 || e.open && len(path) > 0 && path[0] == '/'
}

// isScript reports a path that ends with the name of a PHP script.
func isScript(path []byte) bool {
	const ending = ".php"
	return len(path) > len(ending)+1 && octets.EqualFold(path[len(path)-len(ending):], ending)
}

// other is ambiguity of a decoded path. A route that comes before own counts although one before it may take its place.
func (t *Table) other(method, host []byte, path canonicalPath, own int, least Guard) int {
	guarded := t.guardsStock(own)
	if guarded {
		if e := &t.entries[own]; !e.keeps(path) || path.nested || e.rest && path.odd > 0 {
			return own // other captures, or another route
		}
	}
	for i := range t.entries {
		e := &t.entries[i]
		switch {
		case i == own && (guarded || e.keeps(path)):
			return -1 // in each reading it comes before the routes that follow
		case i == own || !guarded && e.guard < least || !e.takesMethod(method) || !path.authority && !e.takesHost(host):
		case guarded && e.guard == GuardsStock && e.differsBySlash(&t.entries[own].Pattern):
		case !path.unbounded && !e.couldTake(path.text):
		case guarded:
			return own
		default:
			return i
		}
	}
	return -1
}

// guardsStock reports whether the route own, or -1, does.
func (t *Table) guardsStock(own int) bool { return own >= 0 && t.entries[own].guard == GuardsStock }

// keeps reports whether the entry, which takes the path as received, takes it in each reading: all that is odd stands
// behind the segments of its pattern. A slash at the end does not count.
func (e *entry) keeps(path canonicalPath) bool {
	return !path.unbounded && (path.odd == 0 || e.open && path.clean >= len(e.segments))
}

// decode appends path with its escapes undone until none is left. The result is not longer than path.
func decode(dst, path []byte) (text []byte, nested bool) {
	decoded := -1 // where in dst the last byte lies that was an escape
	for _, c := range path {
		dst = append(dst, c)
		for n := len(dst); n >= 3; n = len(dst) {
			c, escaped := octets.Escape(dst[n-3:])
			if !escaped {
				break
			}
			if c == '/' {
				c = '\\'
			}
			nested = nested || decoded >= n-3
			decoded = n - 3
			dst = append(dst[:decoded], c)
		}
	}
	return dst, nested
}

// examine looks for what is odd in a decoded path.
func examine(text []byte, nested bool) canonicalPath {
	path := canonicalPath{text: text, nested: nested}
	path.unbounded = len(text) > maxPath || len(text) == 0 || text[0] != '/' || octets.HasUnicodeEscape(text)
	for segments := 0; len(text) > 0 && !path.unbounded; segments++ {
		separator, piece, rest := cutPiece(text)
		if path.odd == 0 && separator == '/' {
			path.clean = segments
		}
		if separator != '/' || len(rest) > 0 && len(piece) == 0 || len(piece) > 0 && isBlank(piece) || hasDropped(piece) {
			path.odd++
		}
		path.authority = path.authority || segments == 0 && isBlank(piece) && len(rest) > 0
		path.unbounded = withoutDropped(piece, "..") || path.odd > maxOdd
		text = rest
	}
	return path
}

// cutPiece parts text, which is not empty, behind its first byte and before the next separator.
func cutPiece(text []byte) (separator byte, piece, rest []byte) {
	end := 1
	for end < len(text) && !param.EndsSegment(text[end]) {
		end++
	}
	return text[0], text[1:end], text[end:]
}

// isBlank reports a piece that servers drop.
func isBlank(piece []byte) bool { return withoutDropped(piece, "") || withoutDropped(piece, ".") }

// hasDropped reports a byte that some server drops.
func hasDropped(piece []byte) bool {
	for _, c := range piece {
		if param.Dropped(c) {
			return true
		}
	}
	return false
}

// withoutDropped reports whether piece is want once what servers drop is gone. It ignores case.
func withoutDropped(piece []byte, want string) bool {
	at := 0
	for len(piece) > 0 {
		if param.Dropped(piece[0]) {
			piece = piece[1:]
			continue
		}
		c, n := param.Letter(piece)
		if at == len(want) || c != octets.Lower(want[at]) {
			return false
		}
		piece, at = piece[n:], at+1
	}
	return at == len(want)
}

// hasSuffix reports whether suffix ends piece. It ignores case.
func hasSuffix(piece []byte, suffix string) bool {
	for at := range piece {
		if rest, ok := param.CutPrefixFold(piece[at:], suffix); ok && len(rest) == 0 {
			return true
		}
	}
	return suffix == ""
}

// pathOf is a path and query without the query and fragment.
func pathOf(target []byte) []byte {
	for i, c := range target {
		if c == '?' || c == '#' {
			return target[:i]
		}
	}
	return target
}
