package upstream

import (
	"net"
	"syscall"
	"testing"

	"github.com/valyala/fasthttp"
)

// panicking is a connection that panics at its n-th read.
type panicking struct {
	net.Conn
	n int
}

func (p *panicking) Read(b []byte) (int, error) {
	if p.n--; p.n == 0 {
		panic("planned")
	}
	return p.Conn.Read(b)
}

func (p *panicking) SyscallConn() (syscall.RawConn, error) {
	return p.Conn.(syscall.Conn).SyscallConn()
}

// A panic in an exchange costs its request and its connection, but neither the place of a connection nor memory.
func TestTransport_PanicLeavesNoConnectionAndNoMemory(t *testing.T) {
	for name, c := range map[string]struct {
		reads    int // until the panic
		response string
	}{
		"in the head":          {1, ok("x")},
		"in the body":          {2, "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n"},
		"in a buffered stream": {2, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nwell\r\n"},
	} {
		t.Run(name, func(t *testing.T) {
			server := newRawServer(t, func(v *visit) { v.request(); v.reply(c.response); v.waitClosed() })
			o := options(server.url())
			o.MaxConns = 8
			o.Wrap = func(nc net.Conn) net.Conn { return &panicking{nc, c.reads} }
			p := newPool(t, o)
			for range 20 {
				func() {
					defer func() {
						if recover() == nil {
							t.Error("there was no panic")
						}
					}()
					req := newOrder("POST", "/")
					req.Whole = false
					p.Send(req, new(fasthttp.Response))
				}()
			}
			checkConns(t, p, 0, 0)
			if held := defaultMemory - left(p); held != 0 {
				t.Errorf("%d bytes of memory are held", held)
			}
			if x := p.targets.Load().all[0]; x.orders != 0 || x.pages != 0 {
				t.Errorf("%d orders and %d pages are counted", x.orders, x.pages)
			}
		})
	}
}

// A whole response in memory has given its connection back; what it holds is returned when it is closed.
func TestTransport_BufferedBodyHoldsMemoryUntilClose(t *testing.T) {
	const size = 200 << 10
	p := newPool(t, options(largeAnswers(t, size).url()))
	req, resp := newPage("/chunked"), new(fasthttp.Response)
	req.Store = true
	if o := p.Send(req, resp); o != Answered {
		t.Fatal(o)
	}
	checkConns(t, p, 0, 1)
	if held := defaultMemory - left(p); held != 4*streamFrom {
		t.Errorf("%d bytes are held", held)
	}
	if whole := resp.BodyStream().(interface{ Whole() []byte }).Whole(); len(whole) != size {
		t.Errorf("the body has %d bytes", len(whole))
	}
	resp.CloseBodyStream()
	if held := defaultMemory - left(p); held != 0 {
		t.Errorf("%d bytes are held after closing", held)
	}
}
