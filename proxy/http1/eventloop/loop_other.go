//go:build !linux

package eventloop

import (
	"errors"
	"net"
	"syscall"
	"time"
)

// Loops are not to be had here.
type Loops struct{}

// Turn is the leadership of a loop.
type Turn struct{}

// Lead does nothing.
func (Turn) Lead() {}

// Open fails: connections wait in goroutines of their own here.
func Open(Options) (*Loops, error) { return nil, errors.ErrUnsupported }

// Close does nothing.
func (*Loops) Close() {}

// Listen fails.
func (*Loops) Listen(*net.TCPListener) (net.Listener, error) { return nil, errors.ErrUnsupported }

// Socket is never made.
type Socket struct {
	net.Conn
	Owner any
}

// Take fails.
func (*Socket) Take([]byte) (int, error) { return 0, errors.ErrUnsupported }

// Rest fails.
func (*Socket) Rest(time.Duration) (bool, error) { return false, errors.ErrUnsupported }

// Hurry does nothing.
func (*Socket) Hurry(time.Duration) {}

// Reclaim reports that nobody rests.
func (*Socket) Reclaim() bool { return false }

// StepAside does nothing.
func (*Socket) StepAside() {}

// Guest fails.
func (*Socket) Guest(syscall.RawConn) (*Socket, error) { return nil, errors.ErrUnsupported }

// Hush does nothing.
func (*Socket) Hush() {}

// Leave does nothing.
func (*Socket) Leave() {}

// Follow does nothing.
func (*Socket) Follow(*Socket) {}
