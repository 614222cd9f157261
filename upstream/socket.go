package upstream

import (
	"errors"
	"net"
	"os"
	"syscall"
)

// socket is the bare connection below HTTP and below TLS. It knows how many bytes really left, and whether bytes that
// came are still to be decrypted. It is not safe for concurrent use.
type socket struct {
	net.Conn
	written int64 // bytes handed to the kernel since it was last set to 0
	probe   probe

	// dry has Read report a timeout without asking the kernel, so that what crypto/tls has buffered already can be seen
	// without a system call.
	dry     bool
	tls     bool
	records records // of a TLS connection
}

func newSocket(raw net.Conn, encrypted bool) (*socket, error) {
	s := &socket{Conn: raw, tls: encrypted}
	return s, s.probe.open(raw)
}

func (s *socket) Write(p []byte) (int, error) {
	n, err := s.Conn.Write(p)
	s.written += int64(n)
	return n, err
}

func (s *socket) Read(p []byte) (int, error) {
	if s.dry {
		return 0, os.ErrDeadlineExceeded // temporary: crypto/tls does not make it stick
	}
	n, err := s.Conn.Read(p)
	if s.tls {
		s.records.follow(p[:n])
	}
	return n, err
}

// records follows the framing of TLS records (RFC 8446, section 5.1) in what was read from the socket. Bytes of an
// unfinished record are hidden inside crypto/tls, where no probe of the socket can see them.
type records struct {
	header [5]byte
	have   int // bytes of header seen
	left   int // bytes of the record's content still to come
}

func (r *records) follow(p []byte) {
	for len(p) > 0 {
		if r.left > 0 {
			n := min(r.left, len(p))
			r.left -= n
			p = p[n:]
			continue
		}
		n := copy(r.header[r.have:], p)
		r.have += n
		p = p[n:]
		if r.have == len(r.header) {
			r.left = int(r.header[3])<<8 | int(r.header[4])
			r.have = 0
		}
	}
}

// whole reports that no record is cut.
func (r *records) whole() bool { return r.have == 0 && r.left == 0 }

// probe asks the kernel about a socket. The function that it hands to the runtime is made once for each connection, so
// that a probe allocates nothing.
type probe struct {
	raw   syscall.RawConn
	run   func(fd uintptr)
	quiet bool // the last result
}

func (p *probe) open(c net.Conn) error {
	sc, ok := c.(syscall.Conn)
	if !ok {
		return errors.New("open probe: not a socket")
	}
	raw, err := sc.SyscallConn()
	if err != nil {
		return err
	}
	p.raw = raw
	p.run = func(fd uintptr) { p.quiet = silent(fd) }
	return nil
}

// silent reports that the socket is open and that nothing can be read from it. It does not wait, and takes nothing out
// of the socket.
func (p *probe) silent() bool {
	// Control, unlike Read, does not mind a deadline that has passed since the last exchange.
	return p.raw.Control(p.run) == nil && p.quiet
}
