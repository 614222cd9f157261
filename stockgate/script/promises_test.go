package script

import (
	"fmt"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"sluice/internal/redistest"
	"sluice/internal/testkit"
	"sluice/proxy/metrics"
	"sluice/proxy/reject"

	"sluice/stockgate/redisconn"
)

// Each cell of the table is what happens when it is provoked.
func TestPromise_IsWhatHappens(t *testing.T) {
	testkit.Nightly(t, "scripts of shops are tested in a few tests by day")
	t.Parallel()
	for _, name := range presetNames() {
		t.Run(name, func(t *testing.T) {
			s := shopOf(name)
			p, _ := compiled(t, s.def).Promise()
			for _, c := range []struct {
				name, says string
				provoke    func(*testing.T, shop) string
			}{
				{"undersell", p.Undersell, undersell}, {"double buying", p.DoubleBuying, buyTwice},
				{"repeatable", p.Repeatable, comeAgain}, {"give-back twice", p.GiveBackTwice, giveBackTwice},
			} {
				t.Run(c.name, func(t *testing.T) {
					if found := c.provoke(t, s); found != c.says {
						t.Errorf("the table says %q, and what happens is %q", c.says, found)
					}
				})
			}
		})
	}
}

func TestPromise_StandsInTheDocumentation(t *testing.T) {
	testkit.Nightly(t, "scripts of shops are tested in a few tests by day")
	page, err := os.ReadFile("../../docs/scripts.md")
	check(t, err)
	for _, name := range presetNames() {
		p, _ := compiled(t, Definition{Preset: name}).Promise()
		row := fmt.Sprintf("| `%s` | %s | %s | %s | %s |\n", name, p.Undersell, p.DoubleBuying, p.Repeatable, p.GiveBackTwice)
		if !strings.Contains(string(page), row) {
			t.Errorf("docs/scripts.md lacks the row\n%s", row)
		}
	}
}

// The reference table of docs/scripts.md has the keys, arguments and codes of each preset.
func TestPreset_StandsInTheDocumentation(t *testing.T) {
	testkit.Nightly(t, "scripts of shops are tested in a few tests by day")
	page, err := os.ReadFile("../../docs/scripts.md")
	check(t, err)
	list := func(all []string) string { return "`" + strings.Join(all, "` `") + "`" }
	for _, name := range presetNames() {
		p, _ := readPreset(name)
		var codes []string
		for _, o := range outcomeNames() {
			for code, meaning := range p.Codes {
				if meaning == o {
					codes = append(codes, fmt.Sprintf("`%s` %s", code, meaning))
				}
			}
		}
		row := fmt.Sprintf("| `%s` | %s | %s | %s |\n", name, list(p.Keys),
			strings.ReplaceAll(list(p.Args), "``", "`\"\"`"), strings.Join(codes, ", "))
		if !strings.Contains(string(page), row) {
			t.Errorf("docs/scripts.md lacks the row\n%s", row)
		}
	}
}

// The answers of the table.
const (
	no          = "no"
	possible    = "possible"
	yes         = "yes"
	adds        = "adds a unit"
	harmless    = "harmless"
	withoutList = "adds a unit, without a list"
)

// undersell loses the answer to what takes the only unit.
func undersell(t *testing.T, s shop) string {
	r := redistest.Start(t)
	s.stock(t, r.Client, 1)
	learnt(t, r)
	w := between(t, r.Addr)
	d := reserver(t, w.addr, s.def)
	w.lose("evalsha")
	reason, _ := take(d, s.sku, "7", "", 1)
	if w.cut.Load() != nil {
		t.Fatal("no answer was lost")
	}
	left, unanswered := s.left(t, r.Client), d.counts.sum(unitsUnanswered)
	switch {
	case reason == reject.StockError && left == 0 && unanswered == 1:
		return possible
	case reason == reject.Admitted && left == 0 && unanswered == 0:
		return no
	}
	return fmt.Sprintf("heard %s, %d left, %d counted", reason, left, unanswered)
}

// buyTwice lets one user order twice at once, by two gates.
func buyTwice(t *testing.T, s shop) string {
	r := redistest.Start(t)
	s.stock(t, r.Client, 50)
	var bought atomic.Int64
	var all sync.WaitGroup
	for i := range 2 {
		d := reserver(t, r.Addr, s.def)
		all.Go(func() {
			if reason, _ := take(d, s.sku, "7", fmt.Sprint("order-", i), 1); reason == reject.Admitted {
				bought.Add(1)
			}
		})
	}
	all.Wait()
	if bought.Load() == 2 {
		return possible
	}
	return no
}

// comeAgain repeats an order at another gate after it was placed.
func comeAgain(t *testing.T, s shop) string {
	r := redistest.Start(t)
	s.stock(t, r.Client, 50)
	first, second := reserver(t, r.Addr, s.def), reserver(t, r.Addr, s.def)
	reason, serial := take(first, s.sku, "7", "order-1", 1)
	if reason != reject.Admitted {
		t.Fatalf("the first heard %s", reason)
	}
	first.Settle([]byte(s.sku), serial, metrics.OrderConfirmed)
	again, _ := take(second, s.sku, "7", "order-1", 1)
	switch left := s.left(t, r.Client); {
	case again == reject.Duplicate && left == 49:
		return yes
	case again == reject.Admitted && left == 48:
		return no
	default:
		return fmt.Sprintf("heard %s, %d left", again, left)
	}
}

// giveBackTwice takes two orders and gives the first back twice.
func giveBackTwice(t *testing.T, s shop) string {
	found := givenTwice(t, s)
	if s.def.Preset != "hash_bought" || found != harmless {
		return found
	}
	s.def.Keys = s.def.Keys[:1]
	if givenTwice(t, s) == adds {
		return withoutList
	}
	return found
}

func givenTwice(t *testing.T, s shop) string {
	r := redistest.Start(t)
	s.stock(t, r.Client, 5)
	d := reserver(t, r.Addr, s.def)
	orders := []*order{
		{sku: s.sku, user: "7", serial: "a", token: "one", quantity: 1, at: 1},
		{sku: s.sku, user: "8", serial: "b", token: "two", quantity: 1, at: 2},
	}
	d.script.runTake(background, d.way, orders)
	if orders[0].outcome != taken || orders[1].outcome != taken || s.left(t, r.Client) != 3 {
		t.Fatalf("%s and %s, %d left", orders[0].outcome, orders[1].outcome, s.left(t, r.Client))
	}
	for range 2 {
		d.script.giveBack(background, d.way, orders[:1])
	}
	switch s.left(t, r.Client) {
	case 4:
		return harmless
	case 5:
		return adds
	}
	return fmt.Sprintf("%d left of 5, of which one is sold", s.left(t, r.Client))
}

func TestScript_SlotsAreThoseOfRedis(t *testing.T) {
	testkit.Nightly(t, "scripts of shops are tested in a few tests by day")
	r := redistest.Start(t, "--cluster-enabled", "yes")
	for _, key := range []string{"", "a", "123456789", "{1001}:{88}:stock", "x{y}z", "x{}y", "{}{a}", "a{b", "}a{b}",
		"商品:{一}", "{{a}}"} {
		if want := r.Client.ClusterKeySlot(background, key).Val(); int64(redistest.Slot(redisconn.Tag(key))) != want {
			t.Errorf("slot of %q is %d, and Redis says %d", key, redistest.Slot(redisconn.Tag(key)), want)
		}
	}
}

func TestOneSlot_NamesTheKeysThatWouldWork(t *testing.T) {
	for _, s := range shops() {
		err := compiled(t, untagged(s.def)).OneSlot()
		if (err == nil) != (len(s.def.Keys) == 1) {
			t.Errorf("%s: %v", s.def.Preset, err)
		} else if err != nil && (!strings.Contains(err.Error(), "keys[1] = \"") || !strings.Contains(err.Error(), "{$sku")) {
			t.Errorf("%s: %v proposes nothing", s.def.Preset, err)
		}
		if err := compiled(t, s.def).OneSlot(); err != nil {
			t.Errorf("%s: %v", s.def.Preset, err)
		}
	}
	// An order must not choose the slot of its mark.
	if compiled(t, Definition{Preset: "hash_instock", Keys: []string{"h:{$sku}", "$serial:{$sku}"}}).OneSlot() == nil {
		t.Error("a mark that begins with what a client sends is accepted")
	}
}
