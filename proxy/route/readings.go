package route

import (
	"math/bits"

	"sluice/proxy/param"
)

// readings are all ways to split the beginning of a path, followed at once. Each set has bit n where some reading has
// matched the first n segments of a pattern.
type readings struct {
	complete uint64 // the last segment may end here
	extended uint64 // the last segment is a {name} that may hold the next separator as well
	dropped  uint64 // the last segment ended at a ";": what follows it, up to the next "/", may be dropped

	authority bool // all so far is separators, two at least with the next one: an authority may follow it
}

// couldTake reports whether a server that tidies text, a decoded path, in some way could take it for one of the
// pattern. It ignores case and a slash at the end. Each piece of text is looked at once.
func (e *entry) couldTake(text []byte) bool {
	r := readings{complete: 1}
	for len(text) > 0 {
		separator, piece, rest := cutPiece(text)
		if r.taken(e, separator) {
			return true
		}
		if r.step(e, separator, piece); r == (readings{}) {
			return false
		}
		text = rest
	}
	return r.taken(e, 0)
}

// taken reports whether the pattern takes all that comes, or the path may end here. A guarded route may also take a path
// without the slash at its end: on other routes such a path does no harm. Separator is the next one, 0 at the end of the
// path.
func (r *readings) taken(e *entry, separator byte) bool {
	if r.complete>>len(e.segments)&1 == 0 {
		return false
	}
	switch separator {
	case '/', '\\':
		return e.open
	case ';':
		return false
	}
	return !e.open || e.guard > Unguarded && len(e.segments) > 0 // at the end of the path, or where a "?" or "#" may end it
}

// step goes on by one separator and the piece behind it.
func (r *readings) step(e *entry, separator byte, piece []byte) {
	start := uint64(0) // where the piece may begin a segment
	switch separator {
	case '/':
		start, r.extended, r.dropped = r.complete, 0, 0
	case '\\':
		start = r.complete
	case ';':
		r.dropped |= r.complete
	}
	captured, blank := (start&e.captures&^e.affixed)<<1, isBlank(piece)
	if r.authority {
		captured |= start & 1 // dropped, and whatever separator but "/" stands in it
	}
	r.authority = blank && start&1 != 0 || r.authority && r.dropped&1 != 0
	r.complete = r.extended&^(e.affixed<<1) | r.dropped | e.nextLiterals(start, piece)
	r.extended |= captured
	if len(piece) > 0 {
		r.complete |= captured
	}
	if e.affixed != 0 {
		r.stepAffixed(e, start, piece)
	}
	if blank {
		r.complete |= start // the segment is dropped
	}
}

// stepAffixed goes on by one piece in segments with a literal before or behind their {name}: the first piece begins with
// the one, the last piece ends with the other. A piece with bytes that servers drop could do both.
func (r *readings) stepAffixed(e *entry, start uint64, piece []byte) {
	odd := hasDropped(piece)
	for set := e.affixed; set != 0; set &= set - 1 {
		i := bits.TrailingZeros64(set)
		s := &e.segments[i]
		behind, prefixed := param.CutPrefixFold(piece, s.prefix)
		begins := start>>i&1 != 0 && (odd || prefixed)
		ends := odd || hasSuffix(piece, s.suffix)
		if ends && (r.extended>>i&2 != 0 || begins && (odd || len(behind) > len(s.suffix))) {
			r.complete |= 2 << i
		}
		if begins {
			r.extended |= 2 << i
		}
	}
}

// nextLiterals is the part of start at which the pattern has the literal piece, one segment further.
func (e *entry) nextLiterals(start uint64, piece []byte) (next uint64) {
	for s := start & e.literals; s != 0; s &= s - 1 {
		if i := bits.TrailingZeros64(s); withoutDropped(piece, e.segments[i].literal) {
			next |= 2 << i
		}
	}
	return next
}
