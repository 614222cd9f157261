package sim

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/cryptotest"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9/logging"

	"sluice/settle"
	"sluice/stockgate/ledger/protocol"
	"sluice/stockgate/ledger/redisstore"
)

var (
	seeds = flag.Uint64("seeds", 1000, "how many seeds are played; 40 take a second of one core")
	first = flag.Uint64("first", 1, "the first seed")
	calls = flag.String("calls", "", "a file for every command that Redis gets")
)

// unnamed counts the SKUs that an operator opened although no log had named what to do.
var unnamed atomic.Int64

// world is one schedule.
type world struct {
	t        testing.TB
	seed     uint64
	log      *slog.Logger
	network  *network
	shop     *shop
	database *database
	stream   settle.Stream
	redis    *redisServer // under network.mu
	servers  int
	ahead    time.Duration   // by which the clock of Redis is; under network.mu
	dead     map[string]bool // under network.mu

	settles, journal bool
	audits           bool
	hurried          bool        // its operator opens a SKU without waiting for what the log says
	emptied          bool        // Redis was
	closed, gone     bool        // the SKU was not on sale, or had no ledger, when the world was judged last
	named            atomic.Bool // the log has named what a person has to do
	advised          atomic.Bool // the same, if the SKU does not open by itself
	total, perUser   int64
	gateways         []*gateway
	marks            int64
	background       sync.WaitGroup
	starting         sync.WaitGroup // of instances that start again
	began            time.Time
	ctx              context.Context // of this schedule

	mu    sync.Mutex
	trace strings.Builder
}

// tell adds a line to the trace.
func (w *world) tell(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	fmt.Fprintf(&w.trace, "%10.6f ", time.Since(w.began).Seconds())
	fmt.Fprintf(&w.trace, format, args...)
	w.trace.WriteByte('\n')
}

func (w *world) isDead(g *gateway) bool {
	w.network.mu.Lock()
	defer w.network.mu.Unlock()
	return w.dead[g.name]
}

// buying is one shopper's order, and what the shop makes of it.
type buying struct {
	user, key string
	quantity  int64
	makes     bool          // the shop makes the order
	after     time.Duration // so long after it was sent
	answer    time.Duration // its answer, or the gateway's timeout
	lost      bool          // the answer is lost
}

// step is one event of a plan.
type step struct {
	at   time.Duration
	what string
	do   func()
}

const (
	faultsEnd = 4 * time.Second
	hurry     = 6 * time.Second // after which an operator in a hurry does not wait any longer for a SKU to open
	patience  = 2 * time.Minute // after which another one does not
	maxActs   = 4               // of an operator: what settlers know closes a SKU again
	quietEnd  = 4 * time.Minute // by then a ledger is open again, or the log has named what a person has to do
)

// plan draws the orders and faults of a seed.
func (w *world) plan(r *rand.Rand) (steps []step) {
	add := func(at time.Duration, what string, do func()) { steps = append(steps, step{at, what, do}) }
	within := func() time.Duration { return time.Duration(r.Int64N(int64(faultsEnd))) }
	rush := time.Duration(-1) // some orders come to one instance at the same time, and share a call
	if r.IntN(4) == 0 {
		rush = within()
	}
	for i := range 4 + r.IntN(10) {
		b := buying{user: fmt.Sprintf("u%d", r.IntN(12)), quantity: 1 + r.Int64N(2), makes: r.IntN(5) > 0, lost: r.IntN(5) == 0,
			answer: time.Duration(5_000_000 + r.IntN(200_000_000))}
		if r.IntN(3) == 0 {
			b.key = fmt.Sprintf("key-%d", i)
		}
		if r.IntN(6) == 0 {
			b.after = time.Duration(r.IntN(1_200_000_000)) // before its hold ends
		}
		at, g := within(), r.IntN(len(w.gateways))
		switch {
		case rush >= 0 && i < 6:
			at, g = rush+time.Duration(r.IntN(50_000)), 0
		case r.IntN(3) == 0:
			at = time.Duration(r.Int64N(int64(time.Second)))
		}
		add(at, fmt.Sprintf("g%d: %s", g, b), func() { w.background.Go(func() { w.at(g).buy(b) }) })
	}
	for range r.IntN(5) {
		n := r.IntN(16)
		add(within(), fmt.Sprintf("the shop gives order %d back", n), func() { w.giveBack(n) })
	}
	for range r.IntN(3) {
		g, kill := r.IntN(len(w.gateways)), r.IntN(3) > 0
		add(within(), fmt.Sprintf("g%d stops, killed %t", g, kill), func() { w.restart(g, kill) })
	}
	for range r.IntN(3) {
		lost, away := r.IntN(12), time.Duration(r.IntN(2_000_000_000))
		if r.IntN(4) == 0 {
			lost = 0
		}
		add(within(), fmt.Sprintf("fail-over after %v that loses %d writes", away, lost), func() { w.failOver(lost, away) })
	}
	if r.IntN(12) == 0 {
		away := time.Duration(r.IntN(2_000_000_000))
		add(within(), fmt.Sprintf("Redis is away for %v, and empty then", away), func() { w.failOver(all, away) })
	}
	if r.IntN(6) == 0 {
		ago := time.Duration(r.Int64N(int64(faultsEnd)))
		add(within(), fmt.Sprintf("Redis starts with its data of %v ago", ago), func() { w.failOver(w.since(ago), 0) })
	}
	for range r.IntN(8) / 6 {
		by := time.Duration(r.NormFloat64() * float64([]time.Duration{time.Second, time.Minute, 24 * time.Hour}[r.IntN(3)]))
		add(within(), fmt.Sprintf("the clock of Redis jumps by %v", by), func() { w.jump(by) })
	}
	if r.IntN(3) == 0 {
		from := within()
		add(from, "the shop answers no questions", func() { w.mute(true) })
		add(from+time.Duration(r.IntN(3_000_000_000)), "the shop answers again", func() { w.mute(false) })
	}
	slices.SortFunc(steps, func(a, b step) int { return int(a.at - b.at) })
	return steps
}

func (w *world) at(g int) *gateway {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.gateways[g]
}

func (w *world) mute(is bool) {
	w.shop.mu.Lock()
	defer w.shop.mu.Unlock()
	w.shop.mute = is
}

// giveBack cancels the n-th order that the shop has, and says so by the database, or by a gateway.
func (w *world) giveBack(n int) {
	w.shop.mu.Lock()
	var made []string
	for serial, o := range w.shop.orders {
		if o.made && !o.cancelled {
			made = append(made, serial)
		}
	}
	w.shop.mu.Unlock()
	if len(made) == 0 {
		return
	}
	slices.Sort(made)
	serial := made[n%len(made)]
	if !w.shop.cancel(serial) {
		return
	}
	w.tell("the shop gives %s back", serial)
	if w.settles {
		w.database.giveBack(sku, serial)
		return
	}
	w.background.Go(func() { // the shop says so until it is heard
		for ctx := w.ctx; ctx.Err() == nil; time.Sleep(time.Second) {
			done := make([]protocol.Done, 1)
			now := time.Now().UnixMilli()
			_, err := w.at(n%len(w.gateways)).store.Finish(ctx, sku, now, now+keep, protocol.Refund,
				[]protocol.Item{{Serial: serial}}, done)
			if err == nil && done[0] != protocol.NotFound {
				return
			}
		}
	})
}

// restart stops an instance, and starts it again a moment later.
func (w *world) restart(n int, kill bool) {
	g := w.at(n)
	if g.stops.Swap(true) {
		return // its successor is about to start
	}
	if kill {
		w.network.mu.Lock()
		w.dead[g.name] = true
		w.network.mu.Unlock()
		w.network.cut(g.name)
	}
	w.starting.Go(func() {
		g.stop(kill)
		w.mu.Lock()
		w.marks++
		mark := w.marks
		w.mu.Unlock()
		next := w.start(fmt.Sprintf("g%d.%d", n, mark), g.stateDir, mark)
		w.mu.Lock()
		defer w.mu.Unlock()
		w.gateways[n] = next
	})
}

// all writes are lost.
const all = -1

// since is how many writes Redis got in that time.
func (w *world) since(d time.Duration) (n int) {
	w.network.mu.Lock()
	defer w.network.mu.Unlock()
	if w.redis == nil {
		return 0
	}
	now := time.Now().Add(w.redis.ahead)
	for _, done := range slices.Backward(w.redis.writes) {
		if now.Sub(done.at) > d {
			break
		}
		n++
	}
	return n
}

// jump sets the clock of Redis, of this server and those that follow.
func (w *world) jump(by time.Duration) {
	w.network.mu.Lock()
	defer w.network.mu.Unlock()
	w.ahead += by
	if w.redis != nil {
		w.redis.setClock(w.ahead)
	}
}

// failOver puts a server in the place of the master that lacks its last writes.
func (w *world) failOver(lost int, away time.Duration) {
	if lost == all {
		w.emptied = true
	}
	w.network.mu.Lock()
	old := w.redis
	w.redis = nil
	w.network.mu.Unlock()
	if old == nil {
		return
	}
	w.network.cut("")
	old.stop()
	w.background.Go(func() {
		time.Sleep(away)
		w.network.mu.Lock()
		defer w.network.mu.Unlock()
		w.servers++
		w.redis = old.replica(fmt.Sprintf("run%d", w.servers), lost)
		w.redis.setClock(w.ahead)
	})
}

// play plays one seed and returns what is wrong.
func play(t *testing.T, seed uint64, state string, heard io.Writer) (faults []string, plan, trace string) {
	cryptotest.SetGlobalRandom(t, seed)
	time.Sleep(time.Until(time.Date(2000, 1, 1, int(seed), 0, 0, 0, time.UTC))) // at its own time, whichever was first
	r := rand.New(rand.NewPCG(seed, 0))
	w := &world{t: t, seed: seed, dead: make(map[string]bool), began: time.Now(),
		shop:     &shop{orders: make(map[string]*shopOrder)},
		database: &database{rows: make(map[string]settle.Record)},
		settles:  r.IntN(3) > 0, journal: r.IntN(2) == 0, total: 2 + r.Int64N(6), perUser: 2 * r.Int64N(2)}
	w.hurried, w.audits = r.IntN(8) > 0, r.IntN(4) == 0
	w.log = logTo(w)
	w.network = &network{w: w, links: make(map[*link]bool), sent: make(map[uint64]uint64)}
	w.redis = newServer("run0")
	if heard != nil {
		w.redis.heard = func(who string, args []string, changed bool) {
			words := slices.Sorted(slices.Values(args))
			fmt.Fprintf(heard, "%d %d %s %q %t\n", seed, time.Since(w.began), who, words, changed)
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	w.ctx = ctx
	for i := range 2 + r.IntN(5)/4 {
		dir := ""
		if w.journal {
			dir = filepath.Join(state, fmt.Sprintf("%d-%d", seed, i))
		}
		w.marks++
		time.Sleep(time.Duration(r.IntN(1_000_000))) // their clocks tick at different instants
		w.gateways = append(w.gateways, w.start(fmt.Sprintf("g%d", i), dir, w.marks))
	}
	if _, err := w.gateways[0].store.SetTotal(ctx, sku, w.total, w.perUser); err != nil {
		t.Fatal(err)
	}
	w.redis.made = len(w.redis.writes)
	if w.settles {
		if err := w.startSettler(ctx); err != nil {
			t.Fatal(err)
		}
	}
	steps := w.plan(r)
	w.network.faults = []float64{0, 0.01, 0.05}[r.IntN(3)]
	plan = fmt.Sprintf("seed %d: %d gateways, %d units, %d a user, settles %t, journal %t, faults %.2f\n", seed,
		len(w.gateways), w.total, w.perUser, w.settles, w.journal, w.network.faults)
	for _, s := range steps {
		plan += fmt.Sprintf("  %9.3f %s\n", s.at.Seconds(), s.what)
	}
	for _, s := range steps {
		time.Sleep(s.at - time.Since(w.began))
		w.tell("-- %s", s.what)
		s.do()
	}
	time.Sleep(faultsEnd - time.Since(w.began))
	w.network.mu.Lock()
	w.network.faults = 0
	w.network.mu.Unlock()
	w.mute(false)
	w.tell("-- faults end")
	w.starting.Wait()
	for range maxActs {
		faults = w.calm(ctx)
		if len(faults) == 0 || !w.closed {
			break
		}
		w.tell("-- an operator acts")
		if !w.hurried && !w.gone && !w.named.Load() && !w.advised.Load() {
			unnamed.Add(1)
		}
		w.named.Store(false)
		w.advised.Store(false)
		if err := w.operate(ctx); err != nil {
			w.tell("the operator: %v", err)
		}
	}
	cancel()
	for i := range w.gateways {
		w.at(i).stop(false)
	}
	w.background.Wait()
	w.network.cut("")
	w.network.running.Wait()
	w.redis.stop()
	return faults, plan, w.trace.String()
}

// calm waits until nothing is wrong, or until an operator has to open the SKU.
func (w *world) calm(ctx context.Context) (faults []string) {
	pause, began := time.Second, time.Now()
	for time.Since(began) < quietEnd {
		if faults = w.judge(ctx); len(faults) == 0 ||
			w.closed && w.acts(time.Since(began)) {
			break
		}
		time.Sleep(pause + time.Millisecond/3)
		pause = min(pause+time.Second/10, 4*time.Second)
	}
	return faults
}

// acts reports whether an operator opens a SKU that is closed for so long: in a hurry, since the log names what to do,
// or since the dashboard still shows it as frozen.
func (w *world) acts(closed time.Duration) bool {
	return w.named.Load() || (w.hurried || w.gone) && closed > hurry || closed > patience
}

// operate does what an operator does who sees the books of ledger and shop: what the shop has is sold, what it gave back
// is refunded, and the SKU is on sale again.
func (w *world) operate(ctx context.Context) error {
	store := w.at(0).store
	if w.gone {
		if _, err := store.Recreate(ctx, sku, w.total, w.perUser, false); err != nil {
			return err
		}
		time.Sleep(8 * time.Second) // as sluice stock recreate does: instances tell what they know
	}
	w.shop.mu.Lock()
	var sold, back []protocol.Item
	for _, serial := range slices.Sorted(maps.Keys(w.shop.orders)) {
		o := w.shop.orders[serial]
		it := protocol.Item{Serial: serial, User: o.user, Quantity: o.quantity}
		switch {
		case o.made && !o.cancelled:
			sold = append(sold, it)
		case o.cancelled:
			back = append(back, it)
		}
	}
	w.shop.mu.Unlock()
	lost, err := w.tellLedger(ctx, store, protocol.Refund, back) // of which it knows nothing
	for _, act := range []struct {
		op    protocol.Op
		items []protocol.Item
	}{{protocol.Adopt, append(sold, lost...)}, {protocol.Refund, lost}} {
		if err == nil {
			_, err = w.tellLedger(ctx, store, act.op, act.items)
		}
	}
	if err != nil {
		return err
	}
	_, err = store.SetState(ctx, sku, protocol.On)
	return err
}

// tellLedger tells the ledger what an operator knows of orders, and returns those that it does not know.
func (w *world) tellLedger(ctx context.Context, store *redisstore.Store, op protocol.Op, items []protocol.Item) (
	unknown []protocol.Item, err error) {
	if len(items) == 0 {
		return nil, nil
	}
	done, now := make([]protocol.Done, len(items)), time.Now().UnixMilli()
	_, err = store.Finish(ctx, sku, now, now+keep, op, items, done)
	for i, it := range items {
		if done[i] == protocol.NotFound {
			unknown = append(unknown, it)
		}
	}
	return unknown, err
}

// keep is for how long a released serial is remembered, in ms.
const keep = 24 * 3600 * 1000

// judge compares ledger, shop and database.
func (w *world) judge(ctx context.Context) (faults []string) {
	wrong := func(format string, args ...any) { faults = append(faults, fmt.Sprintf(format, args...)) }
	store := w.at(0).store
	w.closed, w.gone = false, false
	stock, ok, err := store.ReadStock(ctx, sku)
	if err != nil || !ok {
		w.gone = errors.Is(err, protocol.ErrLost) || err == nil
		w.closed = w.gone
		wrong("the ledger cannot be read: %v %t", err, ok)
		return faults
	}
	records := make(map[string]protocol.Record)
	if err := store.Records(ctx, sku, func(r protocol.Record) bool { records[r.Serial] = r; return true }); err != nil {
		wrong("the records cannot be read: %v", err)
		return faults
	}
	if w.settles { // no lock is held while Redis is asked: only what waits for time lets time pass
		c, _, err := settle.Verify(ctx, w.stream, w.database, sku)
		c.Differences = slices.DeleteFunc(c.Differences, func(d settle.Difference) bool {
			// An order that never came to be, and that a ledger which was made again does not know: the row stays as missing.
			return w.emptied && d.Ledger == "" && strings.HasPrefix(d.Database, "H ") && !w.shop.stands(d.Serial)
		})
		if err != nil || !c.Equal() {
			wrong("ledger and database: %v %+v", err, c.Differences)
		}
		for _, b := range w.database.backs {
			if b.done == "" {
				wrong("give-back of %s is not done", b.Serial)
			}
		}
	}
	w.shop.mu.Lock()
	defer w.shop.mu.Unlock()
	units := make(map[string]int64)
	for _, o := range w.shop.orders {
		if o.made && !o.cancelled {
			units[o.user] += o.quantity
		}
	}
	for user, n := range units {
		if w.perUser > 0 && n > w.perUser {
			wrong("%s has %d units", user, n)
		}
	}
	if len(w.shop.twice) > 0 {
		wrong("the shop got orders twice: %v", w.shop.twice)
	}
	if sold := w.shop.sold(); sold > w.total {
		wrong("oversold: %d of %d", sold, w.total)
	}
	if w.closed = stock.State != protocol.On; w.closed {
		wrong("the SKU is %s", stock.State)
	}
	if stock.Held > 0 {
		wrong("%d units are still held", stock.Held)
	}
	if sold := w.shop.sold(); stock.Sold != sold {
		wrong("the ledger has %d units sold, the shop %d", stock.Sold, sold)
	}
	for serial, o := range w.shop.orders {
		r := records[serial]
		if stands := o.made && !o.cancelled; stands != (r.Status == protocol.StatusSold) {
			wrong("%s: shop: %s; ledger: %c", serial, o, r.Status)
		}
	}
	for serial, r := range records {
		if r.Status == protocol.StatusSold && w.shop.orders[serial] == nil {
			wrong("%s is sold, and the shop does not know it", serial)
		}
	}
	slices.Sort(faults)
	return faults
}

// TestSchedules_KeepThePromises plays seeds, one after another, in one bubble: go-redis shares timers between clients. One
// processor is enough, and leaves the order of goroutines to chance less often.
func TestSchedules_KeepThePromises(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	defer debug.SetMemoryLimit(debug.SetMemoryLimit(256 << 20))
	state, began, failed := t.TempDir(), time.Now(), 0
	var heard io.Writer
	if *calls != "" {
		f, err := os.Create(*calls)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		out := bufio.NewWriter(f)
		defer out.Flush()
		heard = out
	}
	if _, ok := bugs[*planted]; !ok && *planted != "" {
		t.Fatalf("-planted %q: there is no such bug in planted_test.go", *planted)
	}
	synctest.Test(t, func(t *testing.T) {
		for seed := *first; seed < *first+*seeds && (failed == 0 || *planted == ""); seed++ {
			faults, plan, trace := play(t, seed, state, heard)
			if 2*len(scripts.broken) != len(bugs[*planted]) {
				t.Fatalf("-planted %q: no script has its text", *planted)
			}
			if len(faults) == 0 {
				continue
			}
			if failed++; failed > 3 {
				plan, trace = fmt.Sprintf("seed %d:\n", seed), ""
			}
			t.Errorf("%s%s\n-- trace\n%s", plan, strings.Join(faults, "\n"), trace)
		}
	})
	t.Logf("%d seeds, %d failed, %.0f a second; %d SKUs stayed frozen without a word", *seeds, failed,
		float64(*seeds)/time.Since(began).Seconds(), unnamed.Load())
}

func TestMain(m *testing.M) {
	logging.Disable() // go-redis tells of each connection that fails
	os.Exit(m.Run())
}
