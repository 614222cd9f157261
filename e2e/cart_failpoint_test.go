package e2e

import (
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"sluice/internal/redistest"
	"sluice/internal/testkit"
)

// cartCrash is where a gate dies that is busy with one cart of three lines: at the n-th time that the cart comes by a
// place. Each line comes by those of reserving and settling by itself.
type cartCrash struct {
	place  string
	n      int
	status int  // of the shop's answer
	noLast bool // the last line is rejected: its SKU has another user's order of this key
}

// cartCrashes are all places of a cart that the shop confirms, and those between its lines: also of one that the shop
// rejects, and of one whose last line is. The second time before a line is the first time after the line before it.
func cartCrashes() (all []cartCrash) {
	for _, place := range []string{"reserve", "first-byte", "last-byte", "answer", "settle", "client"} {
		all = append(all, cartCrash{"before-" + place, 1, 200, false}, cartCrash{"after-" + place, 1, 200, false})
	}
	for n := 2; n <= 3; n++ {
		all = append(all, cartCrash{"after-reserve", n, 200, false}, cartCrash{"after-settle", n, 200, false})
	}
	all = append(all, cartCrash{"before-settle", 1, 409, false}, cartCrash{"before-settle", 1, 200, true})
	for n := 1; n <= 3; n++ {
		all = append(all, cartCrash{"after-settle", n, 409, false})
	}
	return append(all, cartCrash{"after-settle", 1, 200, true}, cartCrash{"after-settle", 2, 200, true})
}

// There is one unit of each SKU. Wherever the gate dies, the client that tries again has all lines in the end, by the
// order of before or by another one, and no line is sold or held without the others.
func TestCart_EveryCrashLeavesAllLinesOrNone(t *testing.T) {
	t.Parallel()
	breakable(t)
	for _, c := range cartCrashes() {
		t.Run(fmt.Sprintf("%s:%d,answer=%d,last=%v", c.place, c.n, c.status, c.noLast), func(t *testing.T) {
			if c.n != 2 {
				testkit.Nightly(t, "each of 24 places takes 3 s; those between two lines are tried always")
			}
			t.Parallel()
			c.try(t)
		})
	}
}

func (c cartCrash) try(t *testing.T) {
	r, shop := redistest.Start(t), openCartShop(t, nil)
	shop.status = c.status
	path := file(t, listeners+"server.shutdown_delay = \"0s\"\n"+
		strings.Join([]string{redisAt(r), boundless, shop.settings(), cartRoutes}, "\n"))
	setUnits(t, path, 1, "a", "b")
	setUnits(t, path, 2, "c")
	other := "other"
	if c.noLast {
		other = "k"
	}
	adopted := filepath.Join(t.TempDir(), "orders.csv")
	if err := os.WriteFile(adopted, []byte("serial,user,quantity\n"+other+",2,1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	ok(t, "stock", "recover", "c", "--from", adopted, "--config", path, "--apply")

	command := exec.Command(breakable(t), "run", "--config", path)
	command.Env = []string{fmt.Sprintf("SLUICE_FAILPOINT=%s:%d", c.place, c.n)}
	first := start(t, path, command)
	first.mortal = true
	cart := []cartLine{{"c", 1}, {"a", 1}, {"b", 1}}
	orderCart(first.client, first.front, "1", "k", cart)
	soon(t, "the gate dies", first.gone)
	skus := []string{"a", "b", "c"}
	t.Logf("at its death: %v", cartRecords(t, r, skus))

	shop.mu.Lock()
	shop.status = http.StatusOK
	shop.mu.Unlock()
	g, key, tries := first.again(t), "k", 0
	// What the gate that died had leased from a sweep is free again when that lease has ended: after a minute.
	inTime(t, 4*long, "the client has its cart", func() bool {
		status, reason, _ := orderCart(g.client, g.front, "1", key, cart)
		if reason == "released" || reason == "key_reused" {
			tries++
			key = fmt.Sprint("k", tries)
		}
		return status == http.StatusOK
	})
	inTime(t, 4*long, "all lines are sold", func() bool {
		return ledgerOf(t, r, "a") == account{1, 0, 1} && ledgerOf(t, r, "b") == account{1, 0, 1} &&
			ledgerOf(t, r, "c") == account{2, 0, 2}
	})
	if len(shop.orders) != 1 || shop.orders[key] != "a=1&b=1&c=1" || shop.twice > 0 {
		t.Errorf("the shop has %v, %d came twice; the client has %s", shop.orders, shop.twice, key)
	}
	for serial, lines := range cartRecords(t, r, skus) {
		for sku, state := range lines {
			if sold := serial == key || serial == other && sku == "c"; sold != (state == "C1") {
				t.Errorf("line %s of %s is %s, and the order is %s", sku, serial, state, key)
			}
		}
	}
}
