package upstream

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"time"
)

const (
	namesFresh = 5 * time.Second  // a name's addresses are used so long
	namesRetry = time.Second      // after a look-up that failed, or for which nobody has time
	lookUpTime = 30 * time.Second // for one: name servers that are away cost five seconds each
)

// names remembers for a few seconds which addresses a name has, so that a flood of dials is not a flood of look-ups. If the
// resolver fails, or takes long, the last known addresses stand.
//
// A look-up is nobody's own. It goes on when whoever asked first is called off or has no time left, and what it finds counts
// whenever that comes: a resolver that always takes longer than a dial may would never be heard.
type names struct {
	mu     sync.Mutex
	known  []netip.Addr
	err    error
	until  time.Time
	coming chan struct{}      // closed when a look-up has ended; nil = none is under way
	end    context.CancelFunc // ends it
	late   bool               // somebody has waited for it in vain
	closed bool
}

// lookUp returns the addresses of host. All who ask meanwhile wait for one look-up, and a failure too is remembered, so that
// they do not fail one by one. Whoever is called off waits no longer.
func (n *names) lookUp(ctx context.Context, host string) ([]netip.Addr, error) {
	if ip, err := netip.ParseAddr(host); err == nil {
		return []netip.Addr{ip}, nil
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if time.Now().After(n.until) {
		n.begin(host)
		if !n.late || len(n.known) == 0 {
			n.await(ctx, host)
		}
	}
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("look up %q: %w", host, err)
	}
	return n.known, n.err
}

// begin asks the resolver, unless somebody did. mu is held.
func (n *names) begin(host string) {
	if n.coming != nil {
		return
	}
	ctx, end := context.WithTimeout(context.Background(), lookUpTime)
	if n.closed {
		end()
	}
	n.coming, n.end, n.late = make(chan struct{}), end, false
	go n.ask(ctx, host)
}

// ask takes in what the resolver says.
func (n *names) ask(ctx context.Context, host string) {
	found, err := net.DefaultResolver.LookupNetIP(ctx, "ip", host)
	n.mu.Lock()
	defer n.mu.Unlock()
	n.end()
	defer close(n.coming)
	n.coming = nil
	if err != nil || len(found) == 0 {
		n.miss(host, err)
		return
	}
	n.known, n.err, n.until = found, nil, time.Now().Add(namesFresh)
}

// await waits for the look-up, under mu but for the time that it takes. Where there are addresses that can stand that is at most
// three quarters of what the dial has, which leaves time to connect to them; and who comes later does not wait in vain as well.
func (n *names) await(ctx context.Context, host string) {
	patience, coming := ctx, n.coming
	if end, bounded := ctx.Deadline(); bounded && len(n.known) > 0 {
		var cancel context.CancelFunc
		patience, cancel = context.WithTimeout(ctx, time.Until(end)*3/4)
		defer cancel()
	}
	n.mu.Unlock()
	select {
	case <-coming:
	case <-patience.Done():
	}
	n.mu.Lock()
	if n.coming == coming && !errors.Is(ctx.Err(), context.Canceled) {
		n.late = true
		n.miss(host, patience.Err())
	}
}

// miss lets what is known stand for a moment. mu is held.
func (n *names) miss(host string, err error) {
	n.until = time.Now().Add(namesRetry)
	if len(n.known) == 0 {
		n.err = fmt.Errorf("look up %q: %w", host, err)
	}
}

// close ends the look-up that is under way, and has those that are begun all the same fail.
func (n *names) close() {
	n.mu.Lock()
	n.closed = true
	coming := n.coming
	if coming != nil {
		n.end()
	}
	n.mu.Unlock()
	if coming != nil {
		<-coming
	}
}
