package upstream

import (
	"context"
	"fmt"
	"hash/fnv"
	"net"
	"net/netip"
	"net/url"
	"strings"
	"sync"
	"time"
)

// address is what a target's URL says.
type address struct {
	url       string // as configured; the metrics' label
	authority []byte // for Host
	network   string // "tcp" or "unix"
	host      string // name, address or path
	port      string
	encrypted bool
	hash      uint64 // for client_hash
}

// parseAddress reads "http://host[:port]", "https://host[:port]" or "unix:/path".
func parseAddress(target string) (address, error) {
	a := address{url: target, network: "tcp"}
	h := fnv.New64a()
	h.Write([]byte(target))
	a.hash = h.Sum64()
	if path, ok := strings.CutPrefix(target, "unix:"); ok {
		if path == "" {
			return a, fmt.Errorf("read target %q: no path", target)
		}
		a.network, a.host, a.authority = "unix", path, []byte("localhost")
		return a, nil
	}
	u, err := url.Parse(target)
	if err != nil {
		return a, fmt.Errorf("read target %q: %w", target, err)
	}
	switch {
	case u.Scheme == "http":
		a.port = "80"
	case u.Scheme == "https":
		a.port, a.encrypted = "443", true
	default:
		return a, fmt.Errorf("read target %q: http://, https:// or unix: is needed before the address", target)
	}
	if u.User != nil || u.Hostname() == "" || strings.Trim(u.Path, "/") != "" || u.RawQuery != "" || u.Fragment != "" {
		return a, fmt.Errorf("read target %q: only scheme, host and port may be given", target)
	}
	a.host, a.authority = u.Hostname(), []byte(u.Host)
	if u.Port() != "" {
		a.port = u.Port()
	}
	return a, nil
}

const (
	addressesFresh = 5 * time.Second  // a name's addresses are used so long
	addressesStale = 30 * time.Second // older ones are used only where the name server takes longer than lookUpWait
	lookUpWait     = 200 * time.Millisecond
	lookUpBackoff  = time.Second      // after a look-up that failed
	lookUpTimeout  = 30 * time.Second // of one look-up: each name server that is down costs five seconds
)

// resolver remembers for a few seconds which addresses a name has, so that many dials share one look-up. The last known
// addresses are used until a newer look-up has ended: a dial waits only where none is known, and shortly where they are
// stale. It is safe for concurrent use.
//
// A look-up has a goroutine of its own, which goes on when the dials that wait for it end: the result of a name server
// that is always slower than a dial would never be used otherwise.
type resolver struct {
	mu      sync.Mutex
	known   []netip.Addr
	err     error // of the last look-up, while nothing is known
	until   time.Time
	pending chan struct{}      // closed when the current look-up has ended; nil = there is none
	cancel  context.CancelFunc // ends it
	closed  bool
}

// lookUp returns the addresses of host. All callers share one look-up. A caller whose ctx ends waits no longer.
func (r *resolver) lookUp(ctx context.Context, host string) ([]netip.Addr, error) {
	if ip, err := netip.ParseAddr(host); err == nil {
		return []netip.Addr{ip}, nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if time.Now().After(r.until) {
		r.start(host)
		if pending := r.pending; len(r.known) == 0 || time.Since(r.until) > addressesStale {
			var late <-chan time.Time // nil = never
			if len(r.known) > 0 {
				late = time.After(waitWithin(ctx))
			}
			r.mu.Unlock()
			select {
			case <-pending:
			case <-late:
			case <-ctx.Done():
			}
			r.mu.Lock()
		}
	}
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("look up %q: %w", host, err)
	}
	return r.known, r.err
}

// waitWithin is how long a dial with stale addresses waits: it leaves half of the dial's time for the connection.
func waitWithin(ctx context.Context) time.Duration {
	if end, ok := ctx.Deadline(); ok {
		return min(lookUpWait, time.Until(end)/2)
	}
	return lookUpWait
}

// start starts a look-up, unless there is one. mu is held.
func (r *resolver) start(host string) {
	if r.pending != nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), lookUpTimeout)
	if r.closed {
		cancel()
	}
	r.pending, r.cancel = make(chan struct{}), cancel
	go r.run(ctx, host)
}

// run is the look-up.
func (r *resolver) run(ctx context.Context, host string) {
	found, err := net.DefaultResolver.LookupNetIP(ctx, "ip", host)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.cancel()
	defer close(r.pending)
	r.pending = nil
	switch {
	case err == nil && len(found) > 0:
		r.known, r.err, r.until = found, nil, time.Now().Add(addressesFresh)
		return
	case len(r.known) == 0:
		r.err = fmt.Errorf("look up %q: %w", host, err)
	}
	r.until = time.Now().Add(lookUpBackoff)
}

// close ends the current look-up and waits for it. Later ones fail.
func (r *resolver) close() {
	r.mu.Lock()
	r.closed = true
	pending := r.pending
	if pending != nil {
		r.cancel()
	}
	r.mu.Unlock()
	if pending != nil {
		<-pending
	}
}
