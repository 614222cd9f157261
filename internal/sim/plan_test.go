package sim

// Time in this file is virtual (testing/synctest).

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"sluice/stockgate/ledger"
)

// buying is one shopper's order, and what the shop makes of it.
type buying struct {
	number    int
	user, key string
	quantity  int64
	makes     bool          // the shop makes the order
	after     time.Duration // so long after it was sent
	answer    time.Duration // its answer, or the gateway's timeout
	lost      bool          // the answer is lost
	repeats   time.Duration // so long after it, the shop says to another instance what became of the order; 0 = never
}

// step is one event of a plan.
type step struct {
	at   time.Duration
	what string
	do   func()
}

const (
	hurry    = 6 * time.Second   // after which an operator in a hurry does not wait any longer for a SKU to open
	patience = 150 * time.Second // of another one: it freezes within a minute, and is named in one more
	maxActs  = 4                 // of an operator: what settlers know closes a SKU again
	youngest = 2 * time.Second   // master that another one replaces without a crash
	quietEnd = 4 * time.Minute   // by then a ledger is open again, or the log has named what a person has to do
)

// plan draws the orders and faults of a seed.
func (w *world) plan(r *rand.Rand) (steps []step) {
	add := func(at time.Duration, what string, do func()) { steps = append(steps, step{at, what, do}) }
	slow := w.planLasting()
	within := func() time.Duration { return slow.moved(time.Duration(r.Int64N(int64(w.lasts)))) }
	rush := time.Duration(-1) // some orders come to one instance at the same time, and share a call
	if r.IntN(4) == 0 {
		rush = within()
	}
	for i := range 4 + r.IntN(10) + slow.more() {
		b := buying{number: i, user: fmt.Sprintf("u%d", r.IntN(12)), quantity: 1 + r.Int64N(2), makes: r.IntN(5) > 0,
			lost: r.IntN(5) == 0, answer: time.Duration(5_000_000 + r.IntN(200_000_000))}
		if r.IntN(3) == 0 {
			b.key = fmt.Sprintf("key-%d", i)
		}
		if r.IntN(6) == 0 {
			b.after = time.Duration(r.IntN(1_200_000_000)) // before its hold ends
		}
		if r.IntN(4) == 0 {
			b.repeats = time.Duration(1 + r.IntN(2_000_000_000))
		}
		w.bought = append(w.bought, b)
		at, g := within(), r.IntN(len(w.gateways))
		switch {
		case rush >= 0 && i < 6:
			at, g = rush+time.Duration(r.IntN(50_000)), 0
		case r.IntN(3) == 0:
			at = slow.moved(time.Duration(r.Int64N(int64(time.Second))))
		}
		add(at, fmt.Sprintf("g%d: %s", g, b), func() { w.background.Go(func() { w.at(g).buy(b) }) })
	}
	for range r.IntN(5) {
		n := r.IntN(16)
		add(within(), fmt.Sprintf("the shop gives order %d back", n), func() { w.giveBack(n) })
	}
	for range r.IntN(3) {
		g, kill := r.IntN(len(w.gateways)), r.IntN(3) > 0
		add(within(), fmt.Sprintf("g%d stops, killed %t", g, kill), func() { w.restart(g, kill, 0) })
	}
	for range r.IntN(3) {
		lost, away := r.IntN(12), time.Duration(r.IntN(2_000_000_000))
		if r.IntN(4) == 0 {
			lost = 0
		}
		add(within(), fmt.Sprintf("fail-over after %v that loses %d writes", away, lost), func() { w.failOver(lost, away) })
	}
	if r.IntN(4) == 0 {
		add(within(), "the server before is master again", w.failBack)
	}
	if r.IntN(12) == 0 {
		away := time.Duration(r.IntN(2_000_000_000))
		add(within(), fmt.Sprintf("Redis is away for %v, and empty then", away), func() { w.failOver(all, away) })
	}
	if r.IntN(6) == 0 {
		ago := time.Duration(r.Int64N(int64(w.lasts)))
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
	if w.waits && r.IntN(2) == 0 {
		n, lost, away := r.IntN(len(w.bought)), r.IntN(4), time.Duration(r.IntN(2_000_000_000))
		lose, what := func() int { return lost }, fmt.Sprintf("%d writes", lost)
		if ago := time.Duration(r.IntN(3_000_000)); ago > 0 && r.IntN(2) == 0 { // the attempt is lost, and its hold is not
			lose, what = func() int { return w.since(ago) }, fmt.Sprintf("those of %v", ago)
		}
		back := time.Duration(0)
		if r.IntN(3) == 0 {
			back = youngest + time.Duration(r.IntN(10_000_000_000))
			what += fmt.Sprintf("; the server before is master again %v later", back)
		}
		w.outage = func(g *gateway) {
			for i := range w.gateways {
				if w.at(i) == g {
					w.restart(i, true, 0)
				}
			}
			w.failOver(lose(), away)
			if back > 0 {
				time.Sleep(away + back) // virtual time: for so long the server before is a replica
				w.failBack()
			}
		}
		add(0, fmt.Sprintf("when order %d is sent, its instance is killed, and Redis fails over after %v and loses %s",
			n, away, what), func() { w.struck.Store(int64(n) + 1) })
		add(slow.end(), "no outage begins any more", func() { w.struck.Store(0) })
	}
	if w.waits && r.IntN(2) == 0 { // what waits is delivered meanwhile, too
		from, lasts := within(), time.Duration(r.IntN(4_000_000_000))
		add(from, "the SKU is paused", func() { w.background.Go(w.pause) })
		add(from+lasts, "the SKU goes on", func() { w.paused = true; w.background.Go(w.reinstate) })
	}
	steps, w.end = append(steps, slow.steps...), slow.end()
	slices.SortFunc(steps, func(a, b step) int { return int(a.at - b.at) })
	return steps
}

// pause overrules the state of the SKU, and reinstate ends that, whatever came of it.
func (w *world) pause() {
	if _, _, _, err := w.at(0).store.Overrule(w.ctx, sku, ledger.Paused, 1); err != nil {
		w.tell("pause: %v", err)
	}
}

func (w *world) reinstate() {
	if _, err := w.at(0).store.Reinstate(w.ctx, sku, 1); err != nil {
		w.tell("reinstate: %v", err)
	}
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
			done := make([]ledger.Done, 1)
			now := time.Now().UnixMilli()
			_, err := w.at(n%len(w.gateways)).store.Finish(ctx, sku, now, now+keep, ledger.Refund,
				[]ledger.Item{{Serial: serial}}, done)
			if err == nil && done[0] != ledger.NotFound {
				return
			}
		}
	})
}

// restart stops an instance, and starts it again after a while.
func (w *world) restart(n int, kill bool, after time.Duration) {
	g := w.at(n)
	if w.network.isBack(g, w.lasts) || g.stops.Swap(true) {
		return // or its successor is about to start
	}
	if kill {
		w.network.mu.Lock()
		w.dead[g.name] = true
		w.network.mu.Unlock()
		w.network.cut(g.name)
	}
	w.starting.Go(func() {
		g.stop(kill)
		time.Sleep(after) // virtual time: the fault lasts so long
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

// failOver puts a new server in the place of the master, one that lacks its last writes.
func (w *world) failOver(lost int, away time.Duration) {
	if lost == all {
		w.emptied = true
	}
	w.takeOver(lost, away, func() string {
		w.servers++
		return fmt.Sprintf("run%d", w.servers)
	})
}

// failBack makes the server that was master before the present one, and has copied all from it since, the master again,
// unless the present one is too young for that, or no instance has called it.
func (w *world) failBack() {
	w.network.mu.Lock()
	young := w.redis == nil || time.Since(w.redis.began) < youngest || !w.redis.wasCalled()
	w.network.mu.Unlock()
	if !young {
		w.takeOver(0, 0, func() string { return w.before })
	}
}

// takeOver stops the master. After a while another one has all but its last lost writes.
func (w *world) takeOver(lost int, away time.Duration, name func() string) {
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
		w.redis = old.replica(name(), lost)
		w.redis.setClock(w.ahead)
		w.before = old.name
	})
}
