package upstream

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"slices"
	"sync/atomic"
	"time"
)

// dialer opens connections to one target.
type dialer struct {
	address
	resolver resolver
	settings atomic.Pointer[settings]
	wrap     func(net.Conn) net.Conn
}

// newDialer makes a dialer. wrap may be nil.
func newDialer(a address, s *settings, wrap func(net.Conn) net.Conn) *dialer {
	d := &dialer{address: a, wrap: wrap}
	d.settings.Store(s)
	return d
}

// dial opens one connection, TLS included, within the given time, and ends as soon as ctx does.
func (d *dialer) dial(ctx context.Context, within time.Duration) (*conn, error) {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	raw, err := d.dialAny(ctx)
	if err != nil {
		return nil, err
	}
	if d.wrap != nil {
		raw = d.wrap(raw)
	}
	secure := d.settings.Load().tls
	s, err := newSocket(raw, secure != nil)
	if err != nil {
		raw.Close()
		return nil, fmt.Errorf("open %s: %w", d.url, err)
	}
	if secure == nil {
		return newConn(s, s), nil
	}
	c, err := encrypt(ctx, s, secure)
	if err != nil {
		raw.Close()
		return nil, fmt.Errorf("handshake with %s: %w", d.url, err)
	}
	return c, nil
}

// dialAny tries every address of the host in turn; each gets its share of the time that is left.
func (d *dialer) dialAny(ctx context.Context) (net.Conn, error) {
	var dialer net.Dialer
	if d.network == "unix" {
		return dialer.DialContext(ctx, "unix", d.host)
	}
	addrs, err := d.resolver.lookUp(ctx, d.host)
	if err != nil {
		return nil, err
	}
	end, _ := ctx.Deadline()
	for i, a := range addrs {
		dialer.Timeout = time.Until(end) / time.Duration(len(addrs)-i)
		if dialer.Timeout <= 0 {
			return nil, context.DeadlineExceeded
		}
		var c net.Conn
		c, err = dialer.DialContext(ctx, "tcp", net.JoinHostPort(a.String(), d.port))
		if err == nil {
			return c, nil
		}
	}
	return nil, err
}

func encrypt(ctx context.Context, s *socket, secure *tls.Config) (*conn, error) {
	end, _ := ctx.Deadline()
	if err := s.SetDeadline(end); err != nil {
		return nil, err
	}
	t := tls.Client(s, secure)
	if err := t.HandshakeContext(ctx); err != nil {
		return nil, err
	}
	if p := t.ConnectionState().NegotiatedProtocol; p != "" && p != "http/1.1" {
		return nil, fmt.Errorf("protocol %q was not asked for", p)
	}
	s.written = 0 // the handshake is no part of a request
	c := newConn(s, t)
	c.tls = secure
	return c, nil
}

// dial is the opening of a connection for a request. An upstream whose accept queue is full drops the first packet,
// which is sent again after a whole second (RFC 6298, section 2), and serves existing connections meanwhile. So after
// half of the connect timeout the request takes a returned connection as well. The target's mutex guards a dial.
type dial struct {
	cancel context.CancelFunc
	ended  bool
	given  *conn // the returned connection; nil = none
}

// connect opens the connection that pop has counted, or takes a returned one where that lasts; a fresh one is opened in
// any case.
func (t *target) connect(order, fresh bool) (*conn, error) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	d, timeout := &dial{cancel: cancel}, t.settings.Load().connectTimeout
	if !fresh {
		defer time.AfterFunc(timeout/2, func() { t.takeReturned(d) }).Stop()
	}
	c, err := t.dial(ctx, timeout)
	given := t.endDial(d, order, err)
	switch {
	case err == nil:
		t.noteReached()
		if given != nil { // both came at the same time
			given.Close()
		}
		c.order = order
		return c, nil
	case given != nil:
		given.order, given.returnedAt = order, t.clock.now()
		return given, nil
	}
	t.logUnreached(err)
	return nil, err
}

// takeReturned gives d, which is slow, an idle connection or the next that is put back.
func (t *target) takeReturned(d *dial) {
	t.mu.Lock()
	defer t.mu.Unlock()
	n := len(t.idle)
	switch {
	case d.ended:
	case n > 0 && t.clock.now()-t.idle[n-1].returnedAt < t.settings.Load().maxIdle:
		d.finishWith(t.popLast(false))
	default:
		t.waiting = append(t.waiting, d)
	}
}

// finishWith ends the dial with a connection that was put back. The target's mutex is held.
func (d *dial) finishWith(c *conn) {
	d.given = c
	d.cancel()
}

// endDial counts the result of d, whose error is err: of two connections that are there now one is closed.
func (t *target) endDial(d *dial, order bool, err error) (given *conn) {
	t.mu.Lock()
	defer t.mu.Unlock()
	d.ended = true
	if i := slices.Index(t.waiting, d); i >= 0 {
		t.waiting = slices.Delete(t.waiting, i, i+1)
	}
	if err != nil || d.given != nil {
		t.open--
	}
	if err != nil && d.given == nil {
		*t.inUse(order)--
	}
	t.serve()
	return d.given
}
