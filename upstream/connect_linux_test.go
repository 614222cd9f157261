package upstream

import (
	"net"
	"os"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"sluice/internal/testkit"
)

// narrow is a listener that lets one connection in. Of others the kernel keeps one waiting, and drops what the rest
// sends.
type narrow struct {
	net.Listener
	room chan struct{}
}

func listenNarrow(t *testing.T) *narrow {
	t.Helper()
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err == nil {
		err = unix.Bind(fd, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}})
	}
	if err == nil {
		err = unix.Listen(fd, 0)
	}
	if err != nil {
		t.Fatal(err)
	}
	f := os.NewFile(uintptr(fd), "narrow")
	defer f.Close()
	l, err := net.FileListener(f)
	if err != nil {
		t.Fatal(err)
	}
	n := &narrow{l, make(chan struct{}, 1)}
	n.room <- struct{}{}
	return n
}

func (n *narrow) Accept() (net.Conn, error) {
	if _, ok := <-n.room; !ok {
		return nil, net.ErrClosed
	}
	return n.Listener.Accept()
}

func (n *narrow) Close() error {
	close(n.room)
	return n.Listener.Close()
}

// A request that cannot connect to an upstream whose accept queue is full is sent on a connection that another request
// puts back, before its dial counts as slow or afterwards.
func TestPool_SlowDialTakesAReturnedConnection(t *testing.T) {
	for what, slow := range map[string]bool{"before": false, "afterwards": true} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			answer := make(chan struct{})
			l := listenNarrow(t)
			server := serveRaw(t, l, func(v *visit) {
				v.each(func(head string) {
					<-answer
					v.reply(ok(targetOf(head)))
				})
			})
			o := options(server.url())
			o.ConnectTimeout = 4 * time.Second
			p := newPool(t, o)
			heard := make(chan string, 2)
			send := func(target string) {
				outcome, resp := sendOrder(p, "POST", target)
				if outcome != Answered {
					t.Errorf("%s: %v", target, outcome)
				}
				heard <- string(resp.Body())
			}
			go send("/first")
			testkit.Eventually(t, "the first has come", func() bool { return server.count("/first") == 1 })
			waits, err := net.Dial("tcp", l.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			defer waits.Close()
			go send("/second")
			only := p.targets.Load().all[0]
			testkit.Eventually(t, "the second dials", func() bool {
				only.mu.Lock()
				defer only.mu.Unlock()
				return only.open == 2 && (!slow || len(only.waiting) == 1)
			})
			answer <- struct{}{}
			answer <- struct{}{}
			if one, other := <-heard, <-heard; one+other != "/first/second" && one+other != "/second/first" {
				t.Errorf("heard %s and %s", one, other) // who tells first is the scheduler's choice
			}
			if st := p.Targets()[0]; st.InFlight != 0 || st.Open != 1 || st.Idle != 1 || len(only.waiting) != 0 {
				t.Errorf("%+v", st)
			}
		})
	}
}
