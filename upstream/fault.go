package upstream

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"os"
	"sync"
	"syscall"
	"time"

	"golang.org/x/time/rate"
)

// cause is why a target could not be connected to, or gave no usable response: a label of metrics.
type cause uint8

// The causes. The first ones are those of connections.
const (
	causeName cause = iota
	causeClosedPort
	causeTimeout
	causeCertificate
	causeTLS
	causeOther
	numCauses
)

var causeNames = [numCauses]string{causeName: "name", causeClosedPort: "refused", causeTimeout: "timeout",
	causeCertificate: "certificate", causeTLS: "tls", causeOther: "other"}

// errSpeaksTLS is the fault of an http:// target whose port wants TLS.
var errSpeaksTLS = errors.New("read response: the target answers in TLS")

// Remedy is what an operator does about an error of a connection to a target, or of a response.
func Remedy(err error) string {
	_, remedy := diagnose(err)
	return remedy
}

// diagnose finds the cause of an error of a connection, and what to do about it.
func diagnose(err error) (cause, string) {
	var name *net.DNSError
	var wait net.Error
	switch {
	case errors.Is(err, errSpeaksTLS):
		return causeTLS, "write https:// in upstream.targets"
	case errors.Is(err, errUnhealthy):
		return causeOther, "look at the upstream, or correct upstream.health.path"
	case errors.As(err, &name):
		return causeName, "correct the host in upstream.targets, or the name server"
	case errors.Is(err, syscall.ECONNREFUSED), errors.Is(err, syscall.ENOENT):
		return causeClosedPort, "start the upstream, or correct upstream.targets"
	case errors.Is(err, os.ErrDeadlineExceeded), errors.Is(err, context.DeadlineExceeded),
		errors.As(err, &wait) && wait.Timeout():
		return causeTimeout, "look for a firewall or an overloaded upstream, or raise upstream.response_header_timeout"
	}
	return diagnoseTLS(err)
}

// diagnoseTLS is diagnose for handshakes.
func diagnoseTLS(err error) (cause, string) {
	var authority x509.UnknownAuthorityError
	var host x509.HostnameError
	var invalid x509.CertificateInvalidError
	var record tls.RecordHeaderError
	var alert tls.AlertError
	switch {
	case errors.As(err, &authority):
		return causeCertificate, "name a file in upstream.tls.ca_file that holds the certificate of its CA"
	case errors.As(err, &host):
		return causeCertificate, "write a name of the certificate into upstream.tls.server_name, " +
			"or correct the host in upstream.targets"
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired:
		return causeCertificate, "renew the certificate of the upstream, and check the clock of this machine"
	case errors.As(err, &invalid):
		return causeCertificate, "give the upstream a certificate for servers that its CA may issue"
	case errors.As(err, &record):
		return causeTLS, "the target speaks no TLS on this port: write http:// in upstream.targets, or another port"
	case errors.As(err, &alert):
		return causeTLS, "the upstream ended the handshake: see its log; client certificates are not supported"
	}
	return causeOther, "see the log of the upstream"
}

// faults are what went wrong with a target of late. It is safe for concurrent use.
type faults struct {
	mu        sync.Mutex
	last      error // why the target cannot be used; nil = it can, as far as is known
	connected [numCauses]uint64

	connectLog, responseLog rate.Sometimes // when a line is due
}

// logPause is the time between two lines of the log about one kind of fault of a target.
const logPause = 10 * time.Second

// unreached counts an error of a connection.
func (f *faults) unreached(err error) {
	why, _ := diagnose(err)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.last = err
	f.connected[why]++
}

// set notes why the target cannot be used; nil = it can.
func (f *faults) set(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.last = err
}

// text is the last fault with its remedy; "" = there is none.
func (f *faults) text() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.last == nil {
		return ""
	}
	return f.last.Error() + "; " + Remedy(f.last)
}

// counts are the errors of connections by cause.
func (f *faults) counts() [numCauses]uint64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.connected
}

// logUnreached counts an error of a connection, and logs it at most once in a while.
func (t *target) logUnreached(err error) {
	if t.ejection.failed(t.clock.now()) > 0 {
		t.moveWaiters()
	}
	t.faults.unreached(err)
	if isDue(&t.faults.connectLog) {
		t.log.Warn("cannot connect to the upstream; requests that no other target takes are answered 503 no_upstream",
			"target", t.url, "err", err, "fix", Remedy(err))
	}
}

// isDue reports whether a line may be logged now. The caller logs it: rate.Sometimes holds its lock while it calls, and
// a log that accepts nothing would delay all requests that fail.
func isDue(s *rate.Sometimes) (due bool) {
	s.Do(func() { due = true })
	return due
}

// logBroken logs a request without a usable response, at most once in a while.
func (t *target) logBroken(o Outcome, err error) {
	if o != Broken && o != TimedOut {
		return
	}
	answer, fix := "502 upstream_error", "see the log of the upstream"
	switch {
	case errors.Is(err, errSpeaksTLS):
		fix = Remedy(err)
	case o == TimedOut:
		answer = "504 upstream_timeout"
		fix = "see why the upstream is slow, or raise upstream.response_header_timeout and timeout"
	}
	if isDue(&t.faults.responseLog) {
		t.log.Warn("no usable response from the upstream; the client is answered "+answer,
			"target", t.url, "err", err, "fix", fix)
	}
}

// logCut logs a response that broke off when the client had a part of it, at most once in a while.
func (t *target) logCut(err error) {
	if isDue(&t.faults.responseLog) {
		t.log.Warn("a response of the upstream broke off; the client has a part of it, and its connection is closed",
			"target", t.url, "err", err, "fix", "see the log of the upstream")
	}
}

// retryEjected connects once to a target whose ejection is over: without a request to try it, it would count as down
// although it is back. all waits for the attempt, which ctx ends.
func (t *target) retryEjected(ctx context.Context, all *sync.WaitGroup) {
	if !t.ejection.failing() || t.ejection.active(t.clock.now()) || t.retrying.Swap(true) {
		return
	}
	all.Go(func() {
		defer t.retrying.Store(false)
		c, err := t.dial(ctx, t.settings.Load().connectTimeout)
		switch {
		case err == nil:
			c.Close()
			t.noteReached()
		case ctx.Err() == nil:
			t.logUnreached(err)
		}
	})
}

func (t *target) noteReached() {
	t.faults.set(nil)
	if t.ejection.reached() {
		t.log.Info("the upstream can be connected to again", "target", t.url)
	}
}
