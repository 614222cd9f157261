package room

import (
	"context"
	"errors"
	"log/slog"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"sluice/internal/batch"
	"sluice/internal/octets"
	"sluice/internal/periodic"
	"sluice/limiter"
	"sluice/proxy"
	"sluice/proxy/auth"
	"sluice/proxy/reject"
	"sluice/stockgate/redisconn"
)

const (
	tickEvery   = 100 * time.Millisecond
	idleEvery   = time.Second // before the room opens, and after its sale
	tickTimeout = time.Second
	staleAfter  = time.Second // from then on the document says how old it is
	giveWay     = 50          // ticks in which others may write again what Redis has lost

	joinBurst = 3       // numbers of one user at once; then one a minute
	joinUsers = 1 << 20 // that join within a minute, 16 bytes each, taken as they come; beyond it some wait in vain
)

// Options are what a room has beside its rules.
type Options struct {
	Rules     Rules
	MaxParked int   // requests that wait for news at the same time
	Few       int64 // so many units or less are few; below 0 = nothing is said
	Store     *Store
	Sale      func() Sale               // what the schedule says; nil = the room is always on
	Stock     func() *KnownStock        // what this instance knows of the units; nil = the room follows no stock
	Bypass    *proxy.RoomBypass         // who needs no pass
	Pages     reject.RoomPages          // nil = the built-in ones
	Audit     func(room, commit string) // a draw has been committed to; nil = it is not recorded
	Sells     func(sku []byte) bool     // whether the room's sale has a SKU; nil = each one
	Now       func() int64              // Unix ms of the clock that all instances share
	Log       *slog.Logger
	Before    *Room // of the same name, which this one replaces: its counts and the joins of each user go on; nil = none
}

// Room is one room on this instance. It is safe for concurrent use.
type Room struct {
	o     Options
	scope []byte // of tickets and passes: the key of the room in Redis, which names the shop, too
	view  atomic.Pointer[view]
	secrets
	parking
	joins  batch.Calls[string, number]
	claims batch.Calls[Claim, int64]
	*carried
	record recordCache

	last    atomic.Pointer[storeReading] // never nil
	offSale atomic.Int64                 // KnownStock.OffSale of the last tick
	heard   heard
	other   atomic.Pointer[string] // what OtherHours tells; nil = nothing

	// Of the goroutine alone.
	since time.Time // from then on the hours of the room are not those of the sale; zero = they are
	ticks bool      // it has read the room: one that takes the place of another begins with what that one has read
	none  int       // ticks that have found no room, where Redis was away when this instance started
	drawn Lottery   // that was checked last
	final *Final    // what it came to; nil = it is wrong

	redis *redisconn.Beats
	stop  context.CancelFunc
	done  sync.WaitGroup
}

// carried is what goes on where another Room takes the place of one.
type carried struct {
	counts
	rate  *limiter.RateLimiter // of the joins of each user
	began time.Time            // of the clock of rate

	usesMu sync.Mutex
	uses   []string
}

// secrets are what tickets and passes are made with.
type secrets struct {
	tickets *Keys
	passes  auth.Passes
}

// view is the room as all requests of a moment see it. It does not change.
type view struct {
	state *State
	final *Final // nil = not drawn
	sale  Sale
	word  string // of an operator
	doc   []byte
	tag   string // a weak ETag
	mark  string // what of it is looked for

	passes []byte // what passes are signed for: the room, and when it was opened
}

// New makes a room with keys for its tickets and passes, of which the first one signs. Start runs it.
func New(o Options, keys [][]byte) (*Room, error) {
	if o.Log == nil {
		o.Log = slog.Default()
	}
	if o.Sale == nil {
		o.Sale = func() Sale { return Sale{} }
	}
	r := &Room{o: o, scope: []byte(o.Store.keys.room), redis: redisconn.NewBeats(o.Log.With("room", o.Rules.Name),
		"room: cannot read the room; no more people are called, and no client can join",
		"room: Redis is reached again")}
	r.last.Store(&storeReading{})
	r.parking.most, r.waiters = o.MaxParked, map[*waiter]struct{}{}
	var err error
	if r.secrets, err = newSecrets(keys); err != nil {
		return nil, err
	}
	if o.Pages == nil {
		if r.o.Pages, err = builtInPages(); err != nil {
			return nil, err
		}
	}
	r.carried = &carried{began: time.Now(),
		rate: limiter.NewRateLimiter(limiter.RateSpec{PerSecond: 1.0 / 60, Burst: joinBurst, MaxKeys: joinUsers})}
	state, word, sale := &State{Phase: Hold, At: o.Now()}, "", Sale{} // until Redis has answered
	if b := o.Before; b != nil {
		v := b.view.Load()
		state, word, sale = v.state, v.word, v.sale
		r.last.Store(b.last.Load())
		r.heard.take(b.heard.get())
		o.Store.heard(b.o.Store.heard(issue{}))
		r.carried, r.final, r.drawn, r.o.Before = b.carried, v.final, v.state.Lottery, nil
	}
	r.publish(state, word, sale)
	r.joins = batch.Calls[string, number]{Call: r.takeNumbers, Most: maxBatch, MaxWaiting: maxPending, FailTogether: true,
		Pace: new(pacer)}
	r.claims = batch.Calls[Claim, int64]{Call: r.claimPasses, Most: maxBatch, MaxWaiting: maxPending, FailTogether: true,
		Pace: new(pacer)}
	return r, nil
}

// Start reads the room, or makes it, and follows it from then on.
func (r *Room) Start() {
	ctx, stop := context.WithCancel(context.Background())
	r.stop = stop
	r.tick(ctx) // before the first request: passes are of what it reads
	r.done.Go(func() { r.run(ctx) })
	r.done.Go(func() { r.sweepAll(ctx) })
}

func newSecrets(keys [][]byte) (s secrets, err error) {
	if s.tickets, err = newKeys(keys); err == nil {
		s.passes, err = auth.NewPasses(keys)
	}
	return s, err
}

// Bypass is who needs no pass.
func (r *Room) Bypass() *proxy.RoomBypass { return r.o.Bypass }

// Rules are those of the room.
func (r *Room) Rules() Rules { return r.o.Rules }

// Store is where the room is kept, for what operators change.
func (r *Room) Store() *Store { return r.o.Store }

// Status is the room as this instance sees it: its state, which must not be changed, what an operator has said, how
// many requests wait for news, and how many ms ago the state was read.
func (r *Room) Status() (s *State, word string, parked int, age int64) {
	v := r.view.Load()
	return v.state, v.word, r.count(), max(r.o.Now()-v.state.At, 0)
}

// Later are the units of s that may be sold later: those that orders hold, and those of SKUs that are paused or closed,
// as this instance knows them.
func (r *Room) Later(s *State) (held, offSale int64) {
	offSale = min(r.offSale.Load(), s.Held)
	return s.Held - offSale, offSale
}

// StopWaiting answers all requests that wait for news, and has no more wait: the instance is going to stop.
func (r *Room) StopWaiting() { r.parking.close() }

// Retire ends what Start has begun, but for calls under way. Those who wait for news are answered. Requests that still
// have this room are served.
func (r *Room) Retire() {
	r.StopWaiting()
	r.stop()
	r.done.Wait()
}

// Close is Retire, and waits for all calls. No request may have the room any more.
func (r *Room) Close() {
	r.Retire()
	r.joins.Wait()
	r.claims.Wait()
}

func (r *Room) run(ctx context.Context) {
	next := time.NewTimer(0)
	defer next.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-next.C:
			next.Reset(r.pause()) // before the tick: a slow Redis does not make the ticks rarer
			r.tick(ctx)
		}
	}
}

// sweepAll answers those who have waited long enough.
func (r *Room) sweepAll(ctx context.Context) {
	n := 0
	periodic.After(ctx, sweepTick, func(context.Context) {
		n++
		r.sweep(time.Now(), n%goneTicks == 0)
	})
}

// pause is how long it is until the next tick: longer while the room has nothing to do.
func (r *Room) pause() time.Duration {
	v := r.view.Load()
	opens := v.sale.Starts - r.o.Rules.Opens.Milliseconds()
	if v.state.Phase == Closed && opens-r.o.Now() > 2*idleEvery.Milliseconds() || v.sale.Ended {
		return idleEvery
	}
	return tickEvery
}

// tick reads the room, moves it where it is time to, and publishes what was read.
func (r *Room) tick(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, tickTimeout)
	defer cancel()
	sale := r.o.Sale()
	var stock *KnownStock
	if r.o.Stock != nil {
		stock = r.o.Stock()
		r.offSale.Store(stock.OffSale)
	}
	r.flushUses(ctx)
	before := r.last.Load().State
	if !r.ticks {
		before = nil
	}
	read, err := r.o.Store.Tick(ctx, &r.o.Rules, sale, stock, before)
	if errors.Is(err, ErrNoRoom) && !r.givesWay() {
		if err = r.create(ctx, sale); err == nil {
			read, err = r.o.Store.Tick(ctx, &r.o.Rules, sale, stock, before)
		}
	}
	r.recordTick(ctx, err)
	if err != nil {
		v := r.view.Load()
		r.publish(v.state, v.word, v.sale)
		return
	}
	r.restore(ctx, &read)
	r.compareHours(read.State, sale)
	r.checkDraw(&read.State.Lottery)
	read.State.Phase = r.o.Rules.PhaseAt(read.State, read.Override, sale)
	if c := read.State.Lottery.Commit; c != "" && (before == nil || before.Lottery.Commit != c) {
		if r.o.Audit != nil {
			r.o.Audit(r.o.Rules.Name, c)
		}
	}
	if read.Override != "" && (before == nil || r.view.Load().sale.Starts != sale.Starts) {
		r.o.Log.Warn("room: a state that an operator has set is in force (off: orders need no pass); "+
			"to end it: sluice room resume "+r.o.Rules.Name, "room", r.o.Rules.Name, "state", read.Override)
	}
	r.last.Store(&read)
	r.ticks = true
	r.publish(read.State, read.Override, sale)
	r.move(ctx, &read)
}

// givesWay reports whether another instance may know the room that Redis has lost: a new one would cost all their
// places.
func (r *Room) givesWay() bool {
	if r.last.Load().State != nil || !r.redis.Away() || r.none == giveWay {
		return false
	}
	r.none++
	return true
}

// create makes the room in Redis: a new one, or one that Redis has lost as this instance knows it.
func (r *Room) create(ctx context.Context, sale Sale) error {
	known := *r.last.Load()
	if s := known.State; s != nil && s.Ends != 0 && sale.Starts >= s.Ends {
		if !s.toldHours(sale) {
			known = storeReading{} // that was the sale before
		} else {
			told := *s // another instance has told an earlier end
			told.Starts, told.Ends = sale.Starts, sale.Ends
			known.State = &told
		}
	}
	made, err := r.o.Store.Create(ctx, &r.o.Rules, sale, known)
	switch {
	case err != nil || !made:
		return err
	case known.State != nil:
		r.o.Log.Warn("room: Redis has lost the room; this instance has written it again as it knew it, and nothing is to "+
			"be done", "room", r.o.Rules.Name, "issued", known.State.Issued, "called", known.State.Called)
	default:
		r.o.Log.Info("room: made", "room", r.o.Rules.Name)
	}
	return nil
}

// recordTick notes whether Redis answered, unless the room is being closed.
func (r *Room) recordTick(ctx context.Context, err error) {
	if err == nil || !errors.Is(ctx.Err(), context.Canceled) {
		r.redis.Record(err)
	}
}

// move calls people.
func (r *Room) move(ctx context.Context, read *storeReading) {
	s := read.State
	if s.At-read.MovedAt < tickEvery.Milliseconds() {
		return // another instance has moved it
	}
	most, credit := int64(1)<<40, 0.0
	rate := r.o.Rules.PerSecond
	if s.Rate > 0 {
		rate = s.Rate
	}
	if rate > 0 {
		credit = min(read.Credit+rate*float64(min(s.At-read.MovedAt, 1000))/1000, max(rate, 1))
		most = int64(credit)
	}
	m := r.o.Rules.Move(s, most)
	if m.Calls == 0 && (rate == 0 || s.Waiting() == 0 || !s.moves()) {
		return
	}
	if rate > 0 {
		credit -= float64(m.Calls)
	}
	if _, err := r.o.Store.Move(ctx, s, m, credit); err != nil {
		r.recordTick(ctx, err)
	}
}

// publish makes what requests see of s, and wakes those for whom it has news.
func (r *Room) publish(s *State, word string, sale Sale) {
	before := r.view.Load()
	v := &view{state: s, sale: sale, word: word}
	v.passes = strconv.AppendInt(append(append(v.passes, r.scope...), '\n'), s.Opened, 10)
	age := int64(0)
	if before != nil && before.state == s {
		if age = r.o.Now() - s.At; age < staleAfter.Milliseconds() {
			age = 0
		}
	}
	if s.Lottery.Drawn() {
		v.final = r.final
	}
	doc := r.o.Rules.Document(s, sale, r.o.Few, age)
	at := doc.ServerTime
	doc.ServerTime = 0
	print := octets.NewFingerprint()
	print.AddString(string(lineOf(&doc)))
	v.mark = `"` + hexadecimal(uint64(print)) + `"`
	v.tag = "W/" + v.mark
	doc.ServerTime = at + age
	v.doc = lineOf(&doc)
	r.view.Store(v)
	if before == nil || before.state.Phase != s.Phase || before.state.Serving != s.Serving ||
		before.state.Threshold != s.Threshold {
		r.wake(v)
	}
}

// takeNumbers asks for as many numbers as people join.
func (r *Room) takeNumbers(_ string, people []string) ([]number, error) {
	ctx, cancel := context.WithTimeout(context.Background(), batchTimeout)
	defer cancel()
	next, err := r.o.Store.Join(ctx, len(people), people...)
	if err != nil {
		return nil, err
	}
	numbers := make([]number, len(people))
	for i := range numbers {
		numbers[i] = next
		next.number++
	}
	return numbers, nil
}

// claimPasses asks until when the passes of users are good.
func (r *Room) claimPasses(_ string, claims []Claim) ([]int64, error) {
	ctx, cancel := context.WithTimeout(context.Background(), batchTimeout)
	defer cancel()
	return r.o.Store.Claim(ctx, r.o.Now()+r.o.Rules.Pass.Milliseconds(), r.o.Rules.ClaimWithin, claims)
}
