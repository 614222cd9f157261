package proxy

import (
	"bytes"
	"math/bits"
)

// way is one liberty that a router may take with a path, beside decoding it and overlooking letter case. Which of them
// a shop takes, and in which company, nobody knows: all readings count.
type way uint8

const (
	backslashes way = 1 << iota // \ parts segments, as / does
	parameters                  // ;… is cut off each segment
	marks                       // a decoded ? or # ends the path
	collapse                    // empty segments and "." are dropped
)

// Bounds of the work that one path can make.
const (
	maxDecoded  = 3   // times that a path is decoded
	longReading = 512 // bytes; a longer path may leave one thing open, but not two
)

// waysOf are the liberties that would make a difference to path.
func waysOf(path []byte) (w way) {
	prev := byte(0)
	for i, c := range path {
		switch {
		case c == '\\':
			w |= backslashes
		case c == ';':
			w |= parameters
		case c == '?' || c == '#':
			w |= marks
		case prev == '/' && (c == '/' || c == '.' && (i+1 == len(path) || separates(path[i+1]))):
			w |= collapse
		}
		prev = c
	}
	if w != 0 { // cutting one thing may leave an empty segment behind
		w |= collapse
	}
	return w
}

// separates reports whether some router takes c for the end of a segment.
func separates(c byte) bool { return c == '/' || c == '\\' || c == ';' || c == '?' || c == '#' }

// climbs reports a segment "..": what it leads to depends on what counts as a segment before it. Browsers and libraries
// resolve such a path before they send it.
func climbs(path []byte) bool {
	for i := 1; i+1 < len(path); i++ {
		if path[i] == '.' && path[i+1] == '.' && (path[i-1] == '/' || path[i-1] == '\\') && (i+2 == len(path) || separates(path[i+2])) {
			return true
		}
	}
	return false
}

// read appends path, which begins with a slash, as a router of these ways reads it.
func (w way) read(dst, path []byte) []byte {
	if w&marks != 0 {
		if end := bytes.IndexAny(path, "?#"); end >= 0 {
			path = path[:end]
		}
	}
	start := len(dst)
	for i := 0; i < len(path); {
		i++ // the separator
		from := i
		for i < len(path) && path[i] != '/' && (path[i] != '\\' || w&backslashes == 0) {
			i++
		}
		part := path[from:i]
		if w&parameters != 0 {
			part, _ = cut(part, ';')
		}
		if w&collapse != 0 && (len(part) == 0 || string(part) == ".") {
			continue
		}
		dst = append(append(dst, '/'), part...)
	}
	if len(dst) == start {
		dst = append(dst, '/')
	}
	return dst
}

// eachReading shows all readings of path, first as it came, with how often it was decoded, until see has seen enough.
// The slice is see's for the moment. ok is false when the path is beyond what is looked into.
func (r *request) eachReading(path []byte, see func(path []byte, decoded int) (goOn bool)) (ok bool) {
	// Routers that part the path before they decode it do not take %2f for a slash.
	slashes := false
	for _, slash := range [...]bool{true, false} {
		if !slash && !slashes {
			break // they read it as the others do
		}
		base := append(r.scratch[:0], path...)
		r.scratch = base
		for decoded := 0; ; {
			all := waysOf(base)
			if climbs(base) || len(base) > longReading && bits.OnesCount8(uint8(all&^collapse)) > 1 {
				return false
			}
			if (slash || decoded > 0) && !r.eachWay(base, all, decoded, see) {
				return true
			}
			n := len(base)
			var met bool
			base, met = unescapeBut(base, slash)
			slashes = slashes || met
			if decoded++; decoded > maxDecoded || len(base) == n {
				break
			}
		}
	}
	return true
}

// eachWay shows how path is read with some, all and none of the liberties.
func (r *request) eachWay(path []byte, all way, decoded int, see func([]byte, int) bool) (goOn bool) {
	for w := all; ; w = (w - 1) & all {
		r.line = w.read(r.line[:0], path)
		if !see(r.line, decoded) {
			return false
		}
		if w == 0 {
			return true
		}
	}
}

// withoutEnding cuts what a lenient router overlooks at the end of a path: dots and spaces, or also, as a name of the
// format, an extension. Pages have extensions too (/buy.css beside /buy), so that it counts for what is not merely read.
func withoutEnding(path []byte, extension bool) []byte {
	path = bytes.TrimRight(path, ". ")
	if dot := bytes.LastIndexByte(path, '.'); extension && dot > bytes.LastIndexByte(path, '/')+1 {
		path = path[:dot]
	}
	return path
}

// hasEnding reports whether withoutEnding would cut something off a plain path.
func hasEnding(path []byte, extension bool) bool {
	n := len(path)
	return n > 0 && path[n-1] == '.' || extension && bytes.IndexByte(path[bytes.LastIndexByte(path, '/')+1:], '.') >= 0
}

// behindScript is what PHP hands on of a path that leads through a script, /index.php/order: what stands behind it, which
// many frameworks take for the path. nil = there is none.
func behindScript(path []byte) []byte {
	const script = ".php/"
	for at := 0; ; {
		dot := bytes.IndexByte(path[at:], '.')
		if at += dot; dot < 0 || at+len(script) > len(path) {
			return nil
		}
		if equalFold(path[at:at+len(script)], script) {
			return path[at+len(script)-1:]
		}
		at++
	}
}
