//go:build linux && !noeventloop

package eventloop

import (
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// pause lets a goroutine that never blocks wait in Go's network poller for a moment. runtime.Gosched is not
// enough: the scheduler looks at the network only when no goroutine is runnable, or after 10 ms.
type pause struct {
	file      *os.File // an eventfd; every write to it is an event
	raw       syscall.RawConn
	signalled bool
	signal    func(uintptr) bool
}

func openPause() (*pause, error) {
	fd, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	if err != nil {
		return nil, os.NewSyscallError("eventfd", err)
	}
	p := new(pause)
	if p.file, p.raw, err = pollable(fd, "eventfd"); err != nil {
		return nil, err
	}
	p.signal = p.write
	return p, nil
}

// wait returns after all runnable goroutines of the processor ran, and after the scheduler has looked at the
// network.
func (p *pause) wait() {
	p.signalled = false
	_ = p.raw.Read(p.signal) // fails when the loop closes
}

// write signals the first time. The second time the scheduler has seen the signal.
func (p *pause) write(fd uintptr) bool {
	if p.signalled {
		return true
	}
	p.signalled = true
	one := [8]byte{1}
	_, err := write(int(fd), one[:])
	return err != nil
}

func (p *pause) close() { _ = p.file.Close() }
