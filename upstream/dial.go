package upstream

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"time"
)

// dialer opens connections to one target.
type dialer struct {
	address
	resolver       resolver
	tls            *tls.Config // nil = plain
	connectTimeout time.Duration
	wrap           func(net.Conn) net.Conn
}

// newDialer makes a dialer. base and wrap may be nil. Certificates are verified unless base switches that off.
func newDialer(a address, timeout time.Duration, base *tls.Config, wrap func(net.Conn) net.Conn) *dialer {
	d := &dialer{address: a, connectTimeout: timeout, wrap: wrap}
	if a.encrypted {
		d.tls = &tls.Config{MinVersion: tls.VersionTLS12}
		if base != nil {
			d.tls = base.Clone()
		}
		if d.tls.ServerName == "" {
			d.tls.ServerName = a.host
		}
		d.tls.NextProtos = []string{"http/1.1"}
		d.tls.Renegotiation = tls.RenegotiateNever
	}
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
	s, err := newSocket(raw, d.tls != nil)
	if err != nil {
		raw.Close()
		return nil, fmt.Errorf("open %s: %w", d.url, err)
	}
	if d.tls == nil {
		return newConn(s, s), nil
	}
	c, err := d.encrypt(ctx, s)
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

func (d *dialer) encrypt(ctx context.Context, s *socket) (*conn, error) {
	end, _ := ctx.Deadline()
	if err := s.SetDeadline(end); err != nil {
		return nil, err
	}
	t := tls.Client(s, d.tls)
	if err := t.HandshakeContext(ctx); err != nil {
		return nil, err
	}
	if p := t.ConnectionState().NegotiatedProtocol; p != "" && p != "http/1.1" {
		return nil, fmt.Errorf("protocol %q was not asked for", p)
	}
	s.written = 0 // the handshake is no part of a request
	return newConn(s, t), nil
}
