package upstream

import (
	"context"
	"encoding/binary"
	"io"
	"net"
	"net/netip"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/valyala/fasthttp"

	"sluice/internal/testkit"
)

// A dial does not wait for a look-up where the known addresses are at most addressesStale past their time.
func TestResolver_HangingNameServerIsNotWaitedForWhereAddressesAreKnown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		asked := stalled(t)
		n := resolver{known: []netip.Addr{netip.MustParseAddr("127.0.0.1")}, until: time.Now()}
		defer n.close()
		time.Sleep(addressesStale) // of the bubble
		for range 3 {
			start := time.Now()
			found, err := n.lookUp(t.Context(), "shop.example.")
			if waited := time.Since(start); err != nil || len(found) != 1 || waited != 0 {
				t.Fatalf("%v, %v, after %s; want the known address at once", found, err, waited)
			}
		}
		synctest.Wait()
		if asked.Load() == 0 {
			t.Error("the name server was not asked")
		}
	})
}

// A dial with stale addresses waits for a new look-up, but at most lookUpWait and half of its own time.
func TestResolver_StaleAddressesAreUsedOnlyWhereTheNameServerIsSlow(t *testing.T) {
	fresh, stale := netip.MustParseAddr("127.0.0.1"), netip.MustParseAddr("127.0.0.2")
	for name, tt := range map[string]struct {
		dial, takes, waits time.Duration
		want               netip.Addr
	}{
		"in time":    {time.Second, lookUpWait / 2, lookUpWait / 2, fresh},
		"too slow":   {time.Second, 2 * lookUpWait, lookUpWait, stale},
		"short dial": {lookUpWait, 2 * lookUpWait, lookUpWait / 2, stale},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				knowing(t, func() { time.Sleep(tt.takes) }) // of the bubble
				n := resolver{known: []netip.Addr{stale}, until: time.Now()}
				defer n.close()
				time.Sleep(addressesStale + 1) // of the bubble
				ctx, cancel := context.WithTimeout(t.Context(), tt.dial)
				defer cancel()
				start := time.Now()
				found, err := n.lookUp(ctx, "shop.example.")
				if err != nil || len(found) != 1 || found[0].Unmap() != tt.want {
					t.Errorf("%v, %v, want %s", found, err, tt.want)
				}
				if waited := time.Since(start); waited != tt.waits {
					t.Errorf("it waited %s, want %s", waited, tt.waits)
				}
				time.Sleep(tt.takes) // of the bubble: until the name server has answered
			})
		})
	}
}

// Of two name servers one may be away: then the answer comes after five seconds, which no dial has. It counts all the
// same, at the start and when the server has moved.
func TestResolver_ResultSlowerThanADialIsUsed(t *testing.T) {
	for name, known := range map[string][]netip.Addr{
		"at the start": nil, "the server has moved": {netip.MustParseAddr("127.0.0.2")},
	} {
		t.Run(name, func(t *testing.T) {
			l, _ := silentServer(t)
			const patience = 50 * time.Millisecond
			knowing(t, func() { time.Sleep(5 * patience) }) // longer than any dial
			d := named(t, l, patience)
			d.resolver.known = known
			testkit.Eventually(t, "a dial comes through", func() bool { return d.dialed(t.Context()) == nil })
		})
	}
}

// A look-up outlasts the dials that wait for it, but not its target.
func TestResolver_LookUpEndsWithItsTarget(t *testing.T) {
	asked := stalled(t)
	o := options("http://shop.example.:1")
	o.ConnectTimeout = 20 * time.Millisecond
	p := newPool(t, o)
	removed := p.targets.Load().all[0]
	if outcome := p.Send(smallOrder(), &fasthttp.Response{}); outcome != NotSent {
		t.Fatal(outcome)
	}
	testkit.Eventually(t, "the name server is asked", func() bool { return asked.Load() > 0 })
	if err := replace(p, []string{"http://127.0.0.1:1"}); err != nil {
		t.Fatal(err)
	}
	if removed.resolver.pending != nil {
		t.Error("it goes on")
	}
}

// named is a dialer of the server at l, which has a name.
func named(t *testing.T, l net.Listener, timeout time.Duration) *dialer {
	t.Helper()
	_, port, _ := net.SplitHostPort(l.Addr().String())
	a, err := parseAddress("http://shop.example.:" + port)
	if err != nil {
		t.Fatal(err)
	}
	d := newDialer(a, &settings{connectTimeout: timeout}, nil)
	t.Cleanup(d.resolver.close)
	return d
}

// dialed opens a connection and closes it.
func (d *dialer) dialed(ctx context.Context) error {
	c, err := d.dial(ctx, d.settings.Load().connectTimeout)
	if err == nil {
		c.Close()
	}
	return err
}

// knowing has the resolver ask a server that knows 127.0.0.1 for each name, and waits before it says so.
func knowing(t *testing.T, wait func()) (asked *atomic.Int64) {
	was := net.DefaultResolver
	t.Cleanup(func() { net.DefaultResolver = was })
	asked = new(atomic.Int64)
	net.DefaultResolver = &net.Resolver{PreferGo: true, Dial: func(context.Context, string, string) (net.Conn, error) {
		asked.Add(1)
		server, client := net.Pipe()
		go func() {
			defer server.Close()
			var size [2]byte
			if _, err := io.ReadFull(server, size[:]); err != nil {
				return
			}
			m := make([]byte, binary.BigEndian.Uint16(size[:]))
			if _, err := io.ReadFull(server, m); err != nil {
				return
			}
			wait()
			server.Write(answer(m))
		}()
		return client, nil
	}}
	return asked
}

// answer is what a name server says to a question, behind its length (RFC 1035, section 4).
func answer(question []byte) []byte {
	end := 12
	for question[end] != 0 {
		end += 1 + int(question[end])
	}
	kind := question[end+2]
	m := append([]byte(nil), question[:end+5]...)
	copy(m[2:12], []byte{0x84, 0, 0, 1, 0, 0, 0, 0, 0, 0})
	if kind == 1 { // A; of AAAA there is none
		m[7] = 1
		m = append(m, 0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 60, 0, 4, 127, 0, 0, 1)
	}
	return append(binary.BigEndian.AppendUint16(nil, uint16(len(m))), m...)
}
