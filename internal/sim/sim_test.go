package sim

import (
	"bufio"
	"context"
	"flag"
	"fmt"
	"io"
	"log/slog"
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
)

var (
	seeds = flag.Uint64("seeds", 2000, "how many seeds are played; 16 take a second of one core")
	first = flag.Uint64("first", 1, "the first seed")
	calls = flag.String("calls", "", "a file for every command that Redis gets")
)

// playing is the seed that is played.
var playing atomic.Uint64

// watch ends the program when one seed is played for two minutes: a seed takes a tenth of a second, and one that
// never ends prints nothing by itself. It runs in real time, outside the bubble.
func watch(t *testing.T) {
	tick := time.NewTicker(time.Minute)
	stop := make(chan struct{})
	t.Cleanup(func() { tick.Stop(); close(stop) })
	go func() {
		for last, times := uint64(0), 0; ; {
			select {
			case <-stop:
				return
			case <-tick.C:
			}
			if now := playing.Load(); now != last {
				last, times = now, 0
			} else if times++; times == 2 {
				panic(fmt.Sprintf("seed %d does not end: it has been played for two minutes", last))
			}
		}
	}()
}

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
	before   string          // the master before this one; under network.mu
	ahead    time.Duration   // by which the clock of Redis is; under network.mu
	dead     map[string]bool // under network.mu

	settles, journal bool
	waits            bool // orders wait in the ledger's queue, and deliverers send them
	hold             time.Duration
	bought           []buying     // the orders of the plan
	struck           atomic.Int64 // the number of the order, from 1 on, with whose attempt an outage begins; 0 = none
	outage           func(*gateway)
	skews            [2]time.Duration // by which clocks of instances are ahead: they differ by less than the grace
	hurried          bool             // its operator opens a SKU without waiting for what the log says
	emptied          bool             // Redis was
	paused           bool             // the SKU was, for a while
	closed, gone     bool             // the SKU was not on sale, or had no ledger, when the world was judged last
	named            atomic.Bool      // the log has named what a person has to do
	advised          atomic.Bool      // the same, if the SKU does not open by itself
	total, perUser   int64
	gateways         []*gateway
	marks            int64
	background       sync.WaitGroup
	starting         sync.WaitGroup // of instances that start again
	began            time.Time
	lasts            time.Duration   // for which orders come and faults begin, but for those that last for minutes
	end              time.Duration   // of all faults
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

const lastSeed = 2_000_000

// play plays one seed and returns what is wrong.
func play(t *testing.T, seed uint64, state string, heard io.Writer) (faults []string, plan, trace string) {
	cryptotest.SetGlobalRandom(t, seed)
	time.Sleep(time.Until(time.Date(2000, 1, 1, int(seed), 0, 0, 0, time.UTC))) // at its own time, whichever was first
	r := rand.New(rand.NewPCG(seed, 0))
	w := &world{t: t, seed: seed, dead: make(map[string]bool), began: time.Now(),
		shop:     &shop{orders: make(map[string]*shopOrder)},
		database: &database{rows: make(map[string]settle.Record)},
		settles:  r.IntN(3) > 0, journal: r.IntN(2) == 0, total: 2 + r.Int64N(6), perUser: 2 * r.Int64N(2), hold: hold}
	w.hurried = r.IntN(8) > 0
	w.waits = r.IntN(8) == 0 // deliverers ask Redis all the time
	if w.lasts = 4 * time.Second; w.waits {
		w.lasts *= 2 // for 3 s they send nothing
	}
	if w.waits && r.IntN(2) == 0 {
		w.hold = []time.Duration{long, longer}[r.IntN(2)]
	}
	if r.IntN(3) == 0 {
		w.skews = [2]time.Duration{-time.Duration(r.IntN(90_000_000)), time.Duration(r.IntN(90_000_000))}
	}
	w.log = logTo(w)
	w.network = &network{w: w, links: make(map[*link]bool), apart: make(map[string]int),
		joined: make(map[string]time.Time), sent: make(map[uint64]uint64)}
	w.redis, w.before = newServer("run0"), "another"
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
	plan = fmt.Sprintf("seed %d: %d gateways, %d units, %d a user, settles %t, journal %t, waits %t for %v, faults %.2f\n",
		seed, len(w.gateways), w.total, w.perUser, w.settles, w.journal, w.waits, w.hold, w.network.faults)
	for _, s := range steps {
		plan += fmt.Sprintf("  %9.3f %s\n", s.at.Seconds(), s.what)
	}
	for _, s := range steps {
		time.Sleep(s.at - time.Since(w.began))
		w.tell("-- %s", s.what)
		s.do()
	}
	time.Sleep(w.end - time.Since(w.began)) // virtual time: the faults end then
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
	// No late request is under way: go-redis holds a lock meanwhile, which stops virtual time.
	time.Sleep(w.end + 2*time.Second - time.Since(w.began)) // virtual time: behind the end of the faults
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

// TestSchedules_KeepThePromises plays seeds, one after another, in one bubble: go-redis shares timers between clients.
// One processor is enough, and leaves the order of goroutines to chance less often.
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
	if *first+*seeds > lastSeed {
		t.Fatalf("seeds %d to %d: the last is %d, since each begins at an hour of its own and virtual time ends in 2262",
			*first, *first+*seeds-1, lastSeed)
	}
	if _, ok := bugs[*planted]; !ok && *planted != "" {
		t.Fatalf("-planted %q: there is no such bug in planted_test.go", *planted)
	}
	watch(t)
	synctest.Test(t, func(t *testing.T) {
		for seed := *first; seed < *first+*seeds && (failed == 0 || *planted == ""); seed++ {
			playing.Store(seed)
			before := unnamed.Load()
			faults, plan, trace := play(t, seed, state, heard)
			if played := seed - *first + 1; played%1000 == 0 && played < *seeds {
				t.Logf("%d seeds, %d failed", played, failed)
			}
			if 2*len(broken) != len(bugs[*planted]) {
				t.Fatalf("-planted %q: no script has its text", *planted)
			}
			if len(faults) == 0 && unnamed.Load() == before {
				continue
			}
			if failed++; failed > 3 {
				plan, trace = fmt.Sprintf("seed %d:\n", seed), ""
			}
			t.Errorf("%s%s\n-- trace\n%s", plan, strings.Join(faults, "\n"), trace)
		}
	})
	t.Logf("%d seeds, %d failed, %.0f a second", *seeds, failed, float64(*seeds)/time.Since(began).Seconds())
	if n := unnamed.Load(); n > 0 && *planted == "" {
		t.Errorf("%d SKUs stayed frozen, and no log had named what to do", n)
	}
}

func TestMain(m *testing.M) {
	logging.Disable() // go-redis tells of each connection that fails
	os.Exit(m.Run())
}
