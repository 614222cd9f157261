package proxy

// Routes are compared in their order, and what a pattern is made of lies here and there in memory. So each has an outline,
// all of them in one short row, at which most routes are passed over. It never says that a route takes a request: the
// pattern does.

// An outline has a lane for the host, and one for each of a path's first segments, with a hash of what stands there.
const (
	laneBits = 10
	lanes    = 64 / laneBits
	lane     = 1<<laneBits - 1
)

// outline is what a pattern wants to see in those lanes for which it has a name, and not {anything}.
type outline struct{ wants, lanes uint64 }

func (p *pattern) outline() (o outline) {
	if p.host != "" {
		o = outline{hashed(p.host), lane}
	}
	for i, s := range p.segments {
		if at := 1 + i; at < lanes && !s.capture {
			o.wants |= hashed(s.literal) << (at * laneBits)
			o.lanes |= lane << (at * laneBits)
		}
	}
	return o
}

// fits reports whether the pattern is worth comparing with a request that shows seen.
func (o outline) fits(seen uint64) bool { return (o.wants^seen)&o.lanes == 0 }

// outlines are those of all routes, in their order.
type outlines struct {
	row   []outline
	lanes uint64 // that any of them looks at; no other is filled
}

func outlinesOf(routes []route) (all outlines) {
	for i := range routes {
		o := routes[i].pattern.outline()
		all.row = append(all.row, o)
		all.lanes |= o.lanes
	}
	return all
}

// seen is what a request shows in each lane.
func (all *outlines) seen(host, path []byte) (seen uint64) {
	if all.lanes&lane != 0 {
		seen = hashed(host)
	}
	if len(path) > 0 {
		path = path[1:]
	}
	for shift := laneBits; all.lanes>>shift != 0; shift += laneBits {
		var part []byte
		part, path = cut(path, '/')
		seen |= hashed(part) << shift
	}
	return seen
}

// hashed is the same for names that differ in letter case alone, which lenient shops overlook. Of a long one the beginning will do: a
// path can be one segment of 8 KiB, which has dozens of readings.
func hashed[T string | []byte](name T) uint64 {
	h := uint64(len(name))
	for i := range min(len(name), 24) {
		h = (h ^ uint64(name[i]|0x20)) * 0x9e3779b97f4a7c15
	}
	return h >> (64 - laneBits)
}
