package upstream

import (
	"cmp"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"time"
)

// Options configures a Pool. Every duration and number must be more than 0, if not said otherwise.
type Options struct {
	Targets         []string      // "http://host[:port]", "https://host[:port]" or "unix:/path"; 1 to 64
	Policy          string        // "least_conn", "round_robin", "random", "first" or "client_hash"
	MaxConns        int           // connections to each target, a quarter for orders alone, an eighth for pages alone
	MaxPending      int           // requests that wait for a connection, of all targets; 0 = none waits
	QueueTimeout    time.Duration // how long it waits, for a connection or to hold one; 0 = it does not
	ConnectTimeout  time.Duration // of one connection, name look-up and TLS included
	ResponseTimeout time.Duration // from the end of the request to the head of the response
	Timeout         time.Duration // of the exchange; where a body is streamed, of each single read and write
	IdleConnTimeout time.Duration // keep it below the upstream's keep-alive
	Retry           string        // "off", or "connect": another target, while not one byte was written
	Health          Health
	Memory          int64        // bytes, of responses over 64 KiB that are read whole; 0 = 64 MiB
	TLS             TLS          // of https targets
	Logger          *slog.Logger // changes of state only; nil = none

	// Wrap gets every new connection, below TLS, and returns what is used in its place. That must be a syscall.Conn
	// too and must not read ahead: a connection is probed through it before it is used again. nil = none.
	Wrap func(net.Conn) net.Conn
}

// TLS says how the certificates of https targets are verified.
type TLS struct {
	CA         string // certificates in PEM, in place of the system's; "" = those of the system
	ServerName string // that the certificate must be for, and SNI; "" = the host of the target's URL
}

// Config is for connections to host.
func (o TLS) Config(host string) (*tls.Config, error) {
	c := &tls.Config{
		MinVersion: tls.VersionTLS12, ServerName: cmp.Or(o.ServerName, host),
		NextProtos: []string{"http/1.1"}, Renegotiation: tls.RenegotiateNever,
	}
	if o.CA != "" {
		c.RootCAs = x509.NewCertPool()
		if !c.RootCAs.AppendCertsFromPEM([]byte(o.CA)) {
			return nil, errors.New("read CA: no certificate in PEM")
		}
	}
	return c, nil
}

// settings are the options of one target that Prepare may change. They are replaced, never changed.
type settings struct {
	timeouts
	connectTimeout time.Duration
	queueTimeout   time.Duration
	maxConns       int
	maxIdle        time.Duration
	retry          bool
	secured        TLS
	tls            *tls.Config // nil = plain; the same as before while secured is
}

// settingsOf are those of o for a target at a, in place of old, which may be nil.
func settingsOf(o *Options, a address, old *settings) (*settings, error) {
	s := &settings{
		timeouts:       timeouts{response: o.ResponseTimeout, total: o.Timeout},
		connectTimeout: o.ConnectTimeout, queueTimeout: o.QueueTimeout, maxConns: o.MaxConns,
		maxIdle: o.IdleConnTimeout, retry: o.Retry == "connect", secured: o.TLS,
	}
	var err error
	switch {
	case !a.encrypted:
	case old != nil && old.secured == o.TLS:
		s.tls = old.tls
	default:
		s.tls, err = o.TLS.Config(a.host)
	}
	return s, err
}

// MaxWhole is how many bytes of a response are read whole for a Request that must have it so; more is Broken.
const MaxWhole = 1 << 20

const defaultMemory = 64 << 20 // bytes

func (o *Options) validate() error {
	for name, d := range map[string]time.Duration{
		"connect timeout": o.ConnectTimeout, "response timeout": o.ResponseTimeout,
		"timeout": o.Timeout, "idle connection timeout": o.IdleConnTimeout,
	} {
		if d <= 0 {
			return fmt.Errorf("read %s %v: must be more than 0", name, d)
		}
	}
	if o.MaxConns <= 0 {
		return fmt.Errorf("read limit: %d connections", o.MaxConns)
	}
	if o.MaxPending < 0 || o.QueueTimeout < 0 {
		return fmt.Errorf("read queue: %d requests, %v", o.MaxPending, o.QueueTimeout)
	}
	if o.Retry != "off" && o.Retry != "connect" {
		return fmt.Errorf("read retry %q: not off or connect", o.Retry)
	}
	return o.Health.validate()
}
