package e2e

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"strconv"
	"sync/atomic"
	"testing"

	"net/http"
	"sluice/internal/redistest"
)

// executioner stands between gates and their Redis. When a gate begins to say word for the n-th time, it kills that gate,
// and Redis never hears it: the gate has died between two commands.
type executioner struct {
	addr, word string
	left       atomic.Int64
	victim     atomic.Pointer[running]
}

func execute(t *testing.T, to, word string, n int) *executioner {
	t.Helper()
	x := &executioner{word: word}
	x.left.Store(int64(n))
	x.addr = redistest.Between(t, to, func(client, server *net.TCPConn) (there, back func()) {
		return func() { x.listen(server, client) }, nil
	})
	return x
}

// listen passes on what a gate says, command by command as far as word goes: a gate writes a batch in one piece.
func (x *executioner) listen(to io.Writer, from io.Reader) {
	buf := make([]byte, 64<<10)
	for {
		n, err := from.Read(buf)
		if err != nil {
			return
		}
		if g := x.victim.Load(); g != nil && bytes.Contains(buf[:n], []byte(x.word)) && x.left.Add(-1) == 0 {
			g.mortal = true
			_ = g.process.Process.Kill()
			<-g.ended
			return
		}
		if _, err := to.Write(buf[:n]); err != nil {
			return
		}
	}
}

// A driver that takes by several commands may die between any two of them: units can be lost then, each of those that
// were under way, and none is ever sold twice.
func TestDriver_DeathBetweenCommandsUndersellsAndNeverOversells(t *testing.T) {
	t.Parallel()
	const units = 5
	for _, c := range []struct {
		name, word string
		lost       int  // of the order that is under way at its n-th time
		rejects    bool // the shop, every order that comes before the death
	}{
		{"before it deducts", "\r\nhincrby\r\n", 0, false},
		{"after it deducted, before it marks", "\r\nnx\r\n", 1, false},
		{"before it marks what comes back", ":back\r\n", 1, true},
		{"after it marked, before it adds", "\r\nhincrby\r\n", 1, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r, dead := redistest.Start(t), atomic.Bool{}
			behind := open(t, func(w http.ResponseWriter, _ *http.Request) {
				if c.rejects && !dead.Load() {
					w.WriteHeader(http.StatusConflict)
				}
			})
			nth := 2 // the first order goes well
			if c.rejects && c.word == "\r\nhincrby\r\n" {
				nth = 2 // the first one deducts, and the second adds
			} else if c.rejects {
				nth = 1
			}
			x := execute(t, r.Addr, c.word, nth)
			r.Client.HSet(t.Context(), "goods:{1001}", "inStock", units)
			settings := `
stock.layout.type = "hash_left"
stock.layout.driver = "hash_instock"
stock.layout.key = "goods:{$sku}"
stock.layout.mark_key = "mark:{$sku}:$serial"
`
			g := gate(t, settings, "stock.source = \"redis\"\nstock.redis.addresses = "+quoted(x.addr), boundless, behind.setting(), reserveRoutes)
			x.victim.Store(g)
			bought := 0
			buys := func(g *running, name string) (status int) {
				b := &buyer{user: name, key: "key-" + name}
				defer b.leave()
				if status, _ = b.buy(g.front); status == 200 {
					bought++
				}
				return status
			}
			before := 0
			for i := 0; i < 2*units && !g.gone(); i++ {
				buys(g, "before-"+strconv.Itoa(i))
				before++
				if c.rejects {
					soon(t, "it is given back, or the gate has died", func() bool { return g.gone() || stockLeft(t, r) == units })
				}
			}
			soon(t, "the gate has died", g.gone)
			dead.Store(true)
			after := gate(t, settings, redisAt(r), boundless, behind.setting(), reserveRoutes)
			retried := "before-" + strconv.Itoa(before-1) // whose order was under way
			if c.lost > 0 && !c.rejects {
				if n := r.Client.Exists(context.Background(), "mark:{1001}:key-"+retried).Val(); n != 0 {
					t.Error("the order that was under way has a mark")
				}
			}
			for i := 0; i < 2*units; i++ {
				buys(after, fmt.Sprint("after-", i))
			}
			if left := stockLeft(t, r); bought != units-c.lost || left != 0 {
				t.Errorf("%d units: %d bought, %d left; want %d lost", units, bought, left, c.lost)
			}
		})
	}
}

func stockLeft(t *testing.T, r *redistest.Server) int {
	t.Helper()
	n, err := r.Client.HGet(context.Background(), "goods:{1001}", "inStock").Int()
	if err != nil {
		t.Fatal(err)
	}
	return n
}
