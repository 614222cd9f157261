package proxy

import "bytes"

// again is where the request can be made once more by following a link: its own address, unless it is one where orders
// are placed; a page that goes on by itself must not order by itself.
func (r *request) again() []byte {
	if len(r.path) > 0 && reads(r.method) && !r.route.stocked() {
		return r.asked.Target()
	}
	if from := r.cameFrom(); !r.orders(from) {
		return from
	}
	return nil
}

// orders reports whether following a link to target could place an order, however the shop reads its path.
func (r *request) orders(target []byte) (order bool) {
	if len(target) == 0 || target[0] != '/' {
		return false
	}
	target, _ = cut(target, '#')
	path, _ := splitTarget(target)
	caught := r.caught
	known := r.eachReading(path, func(path []byte, _ int) bool {
		order = r.proxy.nearer(r.proxy.find(get, path, r, true), get, path, r).stocked()
		return !order
	})
	r.caught = caught
	return order || !known
}

var get = []byte("GET")

// cameFrom is the path of the shop's page from which the request came; nil when it does not say so.
func (r *request) cameFrom() []byte {
	_, rest, found := bytes.Cut(r.asked.Peek("Referer"), []byte("://"))
	if host := r.asked.Host(); found && len(host) > 0 && bytes.HasPrefix(rest, host) {
		return rest[len(host):]
	}
	return nil
}
