package ledger

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"sluice/internal/redistest"
	"sluice/internal/testkit"
)

// histories is how many of each kind are recorded at night, or else a quarter; patience is what one of them may cost
// the checker.
const (
	histories = 20
	patience  = time.Minute
)

// recordings is how many histories of each kind this run records.
func recordings() uint64 {
	if nightly() {
		return histories
	}
	return histories / 4
}

// sequential is the model as porcupine wants it: whatever happened at the same time must look as if it had happened
// one after the other, in an order that agrees with the clock.
func sequential(step func(m *model, a act, s seen) bool) porcupine.Model {
	return porcupine.Model{
		Partition: bySKU,
		Init:      func() any { return model{} },
		Step: func(state, input, output any) (bool, any) {
			m := state.(model)
			m.orders = slices.Clone(m.orders)
			fits := step(&m, input.(act), output.(seen))
			slices.SortFunc(m.orders, func(a, b modelled) int { return cmp.Compare(a.serial, b.serial) })
			return fits, m
		},
		Equal:             func(a, b any) bool { return reflect.DeepEqual(a, b) },
		DescribeOperation: func(input, output any) string { return fmt.Sprintf("%+v -> %+v", input, output) },
	}
}

func bySKU(all []porcupine.Operation) (parts [][]porcupine.Operation) {
	of := map[string]int{}
	for _, op := range all {
		sku := op.Input.(act).sku
		i, there := of[sku]
		if !there {
			i, of[sku] = len(parts), len(parts)
			parts = append(parts, nil)
		}
		parts[i] = append(parts[i], op)
	}
	return parts
}

// honest does a to m, and reports whether s is what must come of it.
func honest(m *model, a act, s seen) bool {
	switch a.call {
	case "reserve":
		codes := m.reserve(0, 1, a.until, a.items)
		return s.unknown || slices.Equal(codes, s.codes) && m.hint() == s.hint
	case "find":
		o := m.find(a.items[0].Serial)
		return s.ok == (o != nil) && (o == nil || o.record() == s.record)
	case "look":
		return s.ok && m.stock() == s.stock
	case "total":
		done := m.setTotal(a.total, a.limit, s.stock.Epoch)
		return s.unknown || s.refused != done && m.stock() == s.stock
	case "state":
		m.setState(a.state)
		return s.unknown || m.stock() == s.stock
	}
	done := m.finish(Op(a.call), a.until, a.items)
	return s.unknown || slices.Equal(done, s.done) && m.hint() == s.hint
}

// illegal reports whether no order of the calls explains a history. One for which the checker needs more than its
// patience, such as on a busy machine, counts as explained.
func illegal(t *testing.T, m porcupine.Model, h *history) bool {
	t.Helper()
	result := porcupine.CheckOperationsTimeout(m, h.ops, patience)
	if result == porcupine.Unknown {
		t.Log("the checker did not finish with a history")
	}
	return result == porcupine.Illegal
}

// client calls a store at random, one call after the other.
func client(s anyStore, skus []string, n *rand.Rand, calls int) {
	ctx, later := context.Background(), int64(1_000_000)
	item := func() Item {
		k := n.IntN(7)
		return Item{Serial: fmt.Sprint("serial ", k), User: fmt.Sprint("user ", k%3), Quantity: 1 + int64(k)/5}
	}
	for range calls {
		sku, items := skus[n.IntN(len(skus))], []Item{item()}
		for n.IntN(3) == 0 {
			items = append(items, item())
		}
		until := later + n.Int64N(1_000)
		switch n.IntN(12) {
		case 0, 1, 2, 3:
			_, _ = s.Reserve(ctx, sku, 0, 1, until, items, make([]Code, len(items)))
		case 4, 5, 6, 7:
			op := []Op{Confirm, Release, Refund, Confirm, Release,
				Refund, Adopt}[n.IntN(7)]
			_, _ = s.Finish(ctx, sku, 1, until, op, items, make([]Done, len(items)))
		case 8:
			_, _, _ = s.Find(ctx, sku, items[0].Serial)
		case 9:
			_, _, _ = s.ReadStock(ctx, sku)
		case 10:
			_, _ = s.SetTotal(ctx, sku, 2+n.Int64N(4), 2)
		case 11:
			_, _ = s.SetState(ctx, sku, []State{On, On, Paused}[n.IntN(3)])
		}
	}
}

// recorded is a history of clients on stores that share a Redis.
func recorded(stores []anyStore, name string, seed uint64) *history {
	h := newHistory()
	skus := []string{name + " a", name + " b"}
	for _, sku := range skus {
		for range 100 { // the first call may be lost as well
			if _, err := (recorder{stores[0], h}).SetTotal(context.Background(), sku, 4, 2); err == nil {
				break
			}
		}
	}
	var clients sync.WaitGroup
	for g := range uint64(4) {
		clients.Go(func() {
			client(recorder{stores[g%uint64(len(stores))], h}, skus, rand.New(rand.NewPCG(seed, g)), 14)
		})
	}
	clients.Wait()
	return h
}

// lossyStores are two stores with connections of their own, on which calls are lost.
func lossyStores(
	t *testing.T,
	to *redistest.Server,
	texts map[string]string,
	seed uint64,
) (ways []*lossy, stores []anyStore) {
	t.Helper()
	for i := range uint64(2) {
		way := lossyTo(t, to.Addr, 2*seed+i, 12)
		r := connect(t, &redistest.Server{Addr: way.Addr}, texts)
		ways, stores = append(ways, way), append(stores, r)
	}
	return ways, stores
}

func TestHistory_ConcurrentCallsLookAsIfOneCameAfterTheOther(t *testing.T) {
	server := redistest.Start(t)
	requests, replies, overlaps, codes := 0, 0, 0, map[Code]int{}
	for seed := range recordings() {
		ways, stores := lossyStores(t, server, texts(), seed)
		h := recorded(stores, fmt.Sprint("history ", seed), seed)
		if illegal(t, sequential(honest), h) {
			t.Errorf("history %d cannot be explained: %s", seed, drawn(t, h))
		}
		for _, w := range ways {
			a, b := w.lost()
			requests, replies = requests+a, replies+b
		}
		overlaps += overlapping(h)
		for _, op := range h.ops {
			for _, c := range op.Output.(seen).codes {
				codes[c]++
			}
		}
	}
	t.Logf("%d requests and %d replies were lost, %d pairs overlapped, codes %v", requests, replies, overlaps, codes)
	if !nightly() {
		return // in few histories chance decides what happens
	}
	if requests == 0 || replies == 0 || overlaps < 10*histories {
		t.Error("too little happened: the test says nothing")
	}
	for _, c := range []Code{Held, ReplayHeld, ReplaySold, SoldOut,
		NotOnSale, UserLimit, Released} {
		if codes[c] == 0 {
			t.Errorf("nobody ever heard %d", c)
		}
	}
}

// overlapping counts pairs of calls of one SKU that were under way at the same time.
func overlapping(h *history) (n int) {
	for i, a := range h.ops {
		for _, b := range h.ops[:i] {
			if a.Input.(act).sku == b.Input.(act).sku && a.Call < b.Return && b.Call < a.Return {
				n++
			}
		}
	}
	return n
}

// drawn writes a picture of a history to a file that outlives the test, and returns its path.
func drawn(t *testing.T, h *history) string {
	t.Helper()
	m := sequential(honest)
	_, info := porcupine.CheckOperationsVerbose(m, h.ops, patience)
	file, err := os.CreateTemp("", "history*.html")
	testkit.Check(t, err)
	defer file.Close()
	testkit.Check(t, porcupine.Visualize(m, info, file))
	return file.Name()
}

// What reservers make of their orders - batches, resendings, settlements, strays - is a history as well.
func TestReserver_CallsLookAsIfOneCameAfterTheOther(t *testing.T) {
	server := redistest.Start(t)
	lost := 0
	for seed := range recordings() {
		ways, stores := lossyStores(t, server, texts(), seed)
		h := newHistory()
		at := fmt.Sprint("sale ", seed)
		testkit.Must[Stock](t)(recorder{connect(t, server, texts()), h}.SetTotal(t.Context(), at, 6, 2))
		var reservers []*Reserver
		for _, s := range stores {
			reservers = append(reservers, opened(t, testOptions(), recorder{s, h}, nil))
		}
		testkit.Storm(24, 6, func(i int) { shopper(reservers, at, rand.New(rand.NewPCG(seed, uint64(i)))) })
		for _, d := range reservers {
			d.Close(context.Background())
		}
		if illegal(t, sequential(honest), h) {
			t.Errorf("history %d cannot be explained: %s", seed, drawn(t, h))
		}
		for _, w := range ways {
			_, replies := w.lost()
			lost += replies
		}
	}
	if lost == 0 && nightly() {
		t.Error("no reply was lost: the test says nothing")
	}
}

// shopper orders at one of the reservers, and settles at another.
func shopper(reservers []*Reserver, sku string, n *rand.Rand) {
	d := reservers[n.IntN(len(reservers))]
	user := fmt.Sprint("user ", n.IntN(8))
	out := d.Reserve(
		d.o.Now(),
		Order{SKU: []byte(sku), User: []byte(user), Key: []byte("of-" + user[5:]), Quantity: 1},
	)
	if out.Code == Held {
		reservers[n.IntN(len(reservers))].Settle(sku, out.Serial, []Op{Confirm, Release, Refund}[n.IntN(3)])
	}
}

// outdated is a store whose Look is one call behind.
type outdated struct {
	anyStore

	mu   sync.Mutex
	last map[string]Stock
}

func (o *outdated) ReadStock(ctx context.Context, sku string) (Stock, bool, error) {
	now, ok, err := o.anyStore.ReadStock(ctx, sku)
	if err != nil {
		return now, ok, err
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	before, there := o.last[sku]
	o.last[sku] = now
	if there {
		return before, ok, nil
	}
	return now, ok, nil
}

// mutant is a mistake that somebody could make in a script.
type mutant struct {
	script   string
	old, new string // old occurs exactly once
}

func (m mutant) apply(t *testing.T) map[string]string {
	t.Helper()
	all := maps.Clone(texts())
	if n := strings.Count(all[m.script], m.old); n != 1 {
		t.Fatalf("%q occurs %d times in %s", m.old, n, m.script)
	}
	all[m.script] = strings.Replace(all[m.script], m.old, m.new, 1)
	return all
}

// found reports whether any of the histories cannot be explained. Which calls meet is chance: some bugs need more
// histories.
func found(t *testing.T, m porcupine.Model, name string, stores ...anyStore) bool {
	t.Helper()
	for seed := range uint64(10 * histories) {
		if illegal(t, m, recorded(stores, fmt.Sprint(name, " ", seed), seed)) {
			return true
		}
	}
	return false
}

func TestHistory_HistoriesOfABrokenStoreAreRejected(t *testing.T) {
	testkit.Nightly(t, "it tests the tests")
	server := redistest.Start(t)
	for name, m := range map[string]mutant{
		"no idempotency":                {"reserve", "fresh[serial] or records[i]", "fresh[serial]"},
		"one unit too many":             {"reserve", "elseif quantity > free then", "elseif quantity > free + 1 then"},
		"no user limit":                 {"reserve", "elseif stock.limit > 0 and", "elseif false and"},
		"release without a state check": {"finish", "C = WAS_SOLD", "C = 'X'"},
		"refund twice":                  {"finish", "X = WAS_RELEASED, R = ALREADY}", "X = WAS_RELEASED, R = 'R'}"},
		"a hold counts although sold": {"finish",
			"		if from == 'H' then stock.held = stock.held - quantity else units", "		if from ~= 'H' then units"},
		"no version": {"stock", "	stock.ver = stock.ver + 1\n", "	stock.ver = stock.ver + 2\n"},
	} {
		r := connect(t, server, m.apply(t))
		if !found(t, sequential(honest), name, r, r) {
			t.Errorf("%s: %d histories do not notice", name, 10*histories)
		}
	}
	r := connect(t, server, texts())
	if !found(t, sequential(honest), "outdated", &outdated{anyStore: r, last: map[string]Stock{}}, r) {
		t.Error("nobody notices that a look is outdated")
	}
}

func TestHistory_HistoriesOfAHealthyStoreDoNotFitABrokenModel(t *testing.T) {
	testkit.Nightly(t, "it tests the tests")
	r := connect(t, redistest.Start(t), texts())
	for name, broken := range map[string]func(*model, act, seen) bool{
		"a release gives nothing back": func(m *model, a act, s seen) bool {
			if a.call == string(Release) {
				return true
			}
			return honest(m, a, s)
		},
		"everybody is sold out": func(m *model, a act, s seen) bool {
			return honest(m, a, s) && !slices.Contains(s.codes, Held)
		},
	} {
		if !found(t, sequential(broken), name, r, r) {
			t.Errorf("%s: %d histories fit", name, histories)
		}
	}
}
