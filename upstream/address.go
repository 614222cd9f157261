package upstream

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"net"
	"net/netip"
	"net/url"
	"strings"
	"sync"
	"time"
)

const (
	namesFresh = 5 * time.Second // a name's addresses are used so long
	namesRetry = time.Second     // after a failed look-up
)

// address is where a target is, as its URL says.
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

// names remembers for a few seconds which addresses a name has, so that a flood of dials is not a flood
// of look-ups. If the resolver fails, or hangs, the last known addresses stand.
type names struct {
	mu     sync.Mutex
	known  []netip.Addr
	err    error
	until  time.Time
	coming chan struct{} // closed when a look-up has ended; nil = none is under way
}

// lookUp returns the addresses of host. The first to ask waits for the resolver, and all who ask meanwhile wait for the
// first; a failure too is remembered, so that they do not fail one by one. Whoever is called off waits no longer, and
// that is nobody else's failure: if it was the first, another one asks.
func (n *names) lookUp(ctx context.Context, host string) ([]netip.Addr, error) {
	if ip, err := netip.ParseAddr(host); err == nil {
		return []netip.Addr{ip}, nil
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	for time.Now().After(n.until) {
		if err := ctx.Err(); err != nil {
			return nil, fmt.Errorf("look up %q: %w", host, err)
		}
		if n.coming == nil {
			n.ask(ctx, host)
			continue
		}
		coming := n.coming
		n.mu.Unlock()
		select {
		case <-coming:
		case <-ctx.Done():
		}
		n.mu.Lock()
	}
	return n.known, n.err
}

// ask asks the resolver; under mu, but for the time that it takes. Where there are addresses that can stand that is at most three quarters
// of what the dial has, so that a resolver which hangs leaves time to connect to them.
func (n *names) ask(ctx context.Context, host string) {
	within := ctx
	if end, bounded := ctx.Deadline(); bounded && len(n.known) > 0 {
		var cancel context.CancelFunc
		within, cancel = context.WithTimeout(ctx, time.Until(end)*3/4)
		defer cancel()
	}
	n.coming = make(chan struct{})
	n.mu.Unlock()
	found, err := net.DefaultResolver.LookupNetIP(within, "ip", host)
	n.mu.Lock()
	close(n.coming)
	n.coming = nil
	if err != nil && errors.Is(ctx.Err(), context.Canceled) {
		return
	}
	keep := namesFresh
	if err != nil || len(found) == 0 {
		keep = namesRetry
		found = n.known
	}
	n.known, n.err = found, nil
	if len(found) == 0 {
		n.err = fmt.Errorf("look up %q: %w", host, err)
	}
	n.until = time.Now().Add(keep)
}
