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
	"sluice/internal/testkit"
)

// executioner stands between gates and their Redis. When a gate begins to say word for the n-th time, it kills that
// gate, and Redis never hears it: the gate has died between two commands.
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
	redistest.Pass(to, from, func(piece []byte) bool {
		g := x.victim.Load()
		if g == nil || !bytes.Contains(piece, []byte(x.word)) || x.left.Add(-1) != 0 {
			return true
		}
		g.mortal = true
		_ = g.process.Process.Kill()
		<-g.ended
		return false
	})
}

// An instance that dies before a script is sent loses no unit by that script: the next order takes it. An order that
// was rejected, and not given back yet, leaves its unit taken. None is ever sold twice.
func TestScript_DeathBetweenCommandsUndersellsAndNeverOversells(t *testing.T) {
	testkit.Nightly(t, "of the shop's own script")
	t.Parallel()
	const units = 5
	for _, c := range []struct {
		name    string
		lost    int
		rejects bool // the shop, every order that comes before the death
	}{{"before it takes", 0, false}, {"before it gives back", 1, true}} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r, dead := redistest.Start(t), atomic.Bool{}
			behind := open(t, func(w http.ResponseWriter, _ *http.Request) {
				if c.rejects && !dead.Load() {
					w.WriteHeader(http.StatusConflict)
				}
			})
			x := execute(t, r.Addr, "\r\nevalsha\r\n", 2) // the first one takes for the first order
			r.Client.HSet(t.Context(), "goods:{1001}", "inStock", units)
			settings := `
stock.layout.type = "hash_left"
stock.layout.key = "goods:{$sku}"
stock.script.preset = "hash_instock"
stock.script.keys = ["goods:{$sku}", "mark:{$sku}:$serial"]
`
			g := gate(t, settings, "stock.source = \"redis\"\nstock.redis.addresses = "+quoted(x.addr), boundless,
				behind.setting(), reserveRoutes)
			x.victim.Store(g)
			bought := 0
			buys := func(g *running, name string) {
				b := &buyer{user: name, key: "key-" + name}
				defer b.leave()
				if status, _ := b.buy(g.front); status == 200 {
					bought++
				}
			}
			for i := 0; i < 2 && !g.gone(); i++ {
				buys(g, "before-"+strconv.Itoa(i))
			}
			soon(t, "the instance has died", g.gone)
			dead.Store(true)
			after := gate(t, settings, redisAt(r), boundless, behind.setting(), reserveRoutes)
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
