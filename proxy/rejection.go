package proxy

import (
	"bytes"
	"cmp"
	"strings"
	"time"

	"sluice/internal/octets"
	"sluice/proxy/reject"
	"sluice/proxy/route"
)

// describeRejection fills in what the rejection's response says of this request.
func (p *Proxy) describeRejection(r *Request) {
	head, c := r.head, &r.reject
	*c = reject.Case{
		Reason: r.rejection.Reason, Detail: r.rejection.Detail, Wait: r.rejection.Wait,
		RequestID: r.id, SKU: r.buyer.sku, MayHaveOrdered: r.mayRepeat(), NotInLine: r.notInLine,
		Accept: head.Peek("Accept"), AcceptLanguage: head.Peek("Accept-Language"), Origin: head.Peek("Origin"),
	}
	setStart(c)
	if c.Reason.Class() == reject.Busy {
		bound := cmp.Or(r.limit, p.bound(c.Reason, c.Detail.Cause))
		c.Limit, _, _ = strings.Cut(bound, ": ")
	}
	if c.Reason.MayHaveOrder() {
		c.OrderLink = r.orderLink()
	}
	if room := r.route.room; room != nil && (c.Reason == reject.Room ||
		c.Reason == reject.NotStarted && room.Joinable(r.buyer.sku)) {
		c.Room = room.path
	}
	if bytes.Contains(c.Accept, textHTML) { // it may become a page with links
		c.BackPath = r.backPath()
		c.RetryPath = r.retryPath(c.BackPath)
	}
}

// bound says how large the limit is that has rejected a request; "" = none has.
func (p *Proxy) bound(reason reject.Reason, cause reject.Cause) string {
	if reason == reject.Overloaded && cause != reject.BodyMemory { // the store of a room is away
		return ""
	}
	return p.Bounds[reason]
}

func setStart(c *reject.Case) {
	if c.Reason == reject.NotStarted && c.Wait > 0 {
		c.Starts = time.Now().Add(c.Wait).Round(time.Second)
	}
}

var textHTML = []byte("text/html")

// "This request placed no order, and you were not charged" is what a rejected shopper wants to know, and must not
// read unless it is so. A buyer who had no response asks again, by the same Idempotency-Key or for the order's state:
// to that buyer a limit, or a ledger that cannot be reached, says something of this request alone.
//
// mayRepeat reports whether an earlier request of this client may have placed the order of this one, not looked up.
func (r *Request) mayRepeat() bool {
	if r.internal || r.repeatable {
		return true
	}
	if r.route.Gate != route.Reserve {
		return false
	}
	switch r.rejection.Reason {
	case reject.StockError, reject.Paused, reject.Ended, reject.Overloaded, reject.Room:
		return true
	}
	return r.rejection.Reason.Class() == reject.Busy // every limit
}

// retryPath is where the request can be made once more by following a link: its own address, unless orders are placed
// there; a page that goes on by itself must not order by itself.
func (r *Request) retryPath(back []byte) []byte {
	head := r.head
	target := head.Target
	if len(target) > 0 && target[0] == '/' && route.SafeMethod(head.Method) && !r.route.Gate.GuardsStock() {
		return target
	}
	path, _ := octets.Cut(back, '?')
	path, _ = octets.Cut(path, '#')
	if len(path) == 0 || path[0] != '/' || r.proxy.table.TargetsStock(get, path) {
		return nil
	}
	return back
}

var get = []byte("GET")

// backPath is the path of the page on this host from which the request came; nil when it does not say so.
func (r *Request) backPath() []byte {
	_, rest, found := bytes.Cut(r.head.Peek("Referer"), []byte("://"))
	if host := r.head.Host; found && len(host) > 0 && bytes.HasPrefix(rest, host) {
		return rest[len(host):]
	}
	return nil
}
