// Package load makes what a sale is tried with: a crowd of shoppers, a shop behind the gateway, and a record of what
// happened between them; and servers as processes, with what they cost. The demonstration and the load test use
// the former; the benchmark and the attacks, which are modules of their own, use both.
//
// It promises that the crowd is an open one (a shopper who waits for an answer keeps no other from coming, as long as
// there are connections), that its memory is bounded by the plan, and that each request and each shopper is counted
// once. It does not know what stands at the front: a gateway, or a shop.
package load

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"sluice/proxy/reject"
)

// Plan is who comes when, and what they do. Each shopper orders, orders again while it is told to return or is told
// nothing, and goes home with a final answer.
type Plan struct {
	Front       string          // host:port where they order
	Order       Order           // how an order looks
	Arrivals    []time.Duration // when each shopper orders first, from the start
	First       int             // number of the first shopper: crowds that follow each other are other people
	Addresses   int             // that they come from; 0 = one each
	Connections int             // that they share
	Over        *Connections    // these, which stay open; nil = new ones to Front
	Busy        int             // of these, how many have a request under way at a time; 0 = all
	GiveUpAfter time.Duration   // the last of them came: then all go home
	Tries       int             // orders of one shopper at most; 0 = no limit
	Room        string          // the waiting room that all join before they order; "" = none
	LookUp      bool            // after an unknown outcome a shopper looks it up; otherwise the shopper orders again

	// Request appends an order to dst; nil = it is as Order says.
	Request func(dst []byte, shopper int) []byte

	// Absent tells which shoppers do not come when the waiting room calls them; nil = all come.
	Absent func(shopper int) bool

	// Pause is how long a shopper waits before the next order. told is what Retry-After said.
	Pause func(shopper, try int, told time.Duration) time.Duration
}

// Counts are what the crowd did and heard so far.
type Counts struct {
	Requests   int64 // orders, of which each ends in one of the next six
	Admitted   int64 // answered by the shop
	Accepted   int64 // answered by the gateway: the order waits until it is delivered
	Rejected   map[string]int64
	Unknown    map[string]int64 // rejections by a reason that leaves the outcome unknown
	Broken     int64            // no connection, or one that broke
	Unanswered int64            // the context ended first

	Status     map[int]int64 // all answers, by status
	Overloaded int64         // of those admitted, with status 500 and above
	Delivered  int64         // of those accepted, sold later
	Ended      int64         // of those accepted, without an order in the end
	Lookups    int64         // requests that asked what became of an order
	Room       RoomCounts
	Home       [numEndings]int64 // shoppers, by how they went home
}

// Sum is that of all counts.
func Sum(counts map[string]int64) (n int64) {
	for _, one := range counts {
		n += one
	}
	return n
}

// visit is what a shopper comes for at one time: to order, to ask for the state of the order, or to wait in the room.
type visit struct {
	shopper int32
	lookUp  bool
	waits   bool
}

// calendar holds who comes when, one page for each millisecond. It is safe for concurrent use.
type calendar struct {
	mu    sync.Mutex
	pages [][]visit
	next  int // the first page that was not taken
}

const page = time.Millisecond

// write reports false when the time is past the last page.
func (c *calendar) write(at time.Duration, v visit) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	i := max(int(at/page), c.next)
	if i >= len(c.pages) {
		return false
	}
	c.pages[i] = append(c.pages[i], v)
	return true
}

// takePage gives one page away.
func (c *calendar) takePage(i int) (all []visit) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.next = i + 1
	all, c.pages[i] = c.pages[i], nil
	return all
}

// due is a visit and the time that it was meant for.
type due struct {
	visit
	at time.Duration
}

// Crowd is all shoppers. Each is a few bytes; those who are asking just now have a connection.
type Crowd struct {
	Late       *Stopwatch // requests, from when they were due until they were sent
	Rejections *Stopwatch // answers of the gateway, from when the request was sent
	Answers    *Stopwatch // answers of the shop, likewise
	Accepted   *Stopwatch // of orders that wait then, likewise
	Felt       *Stopwatch // all of these, from when the shopper wanted it
	Sure       *Stopwatch // from the start until a buyer was told of the order, or that it is accepted
	Sent       Series
	Rejected   Series

	plan     Plan
	form     form
	start    time.Time
	calendar calendar
	work     chan due
	empty    chan struct{} // closed when all are home

	// Of each shopper, who is one visit at a time.
	tried    []uint16
	looked   []uint8
	seats    sync.Map // shopper -> its seat in the waiting room
	outcomes []RoomOutcome
	links    sync.Map // shopper -> where the gateway tells of the order, and whether it has accepted it

	mu     sync.Mutex
	counts Counts
	out    int64 // shoppers who are not home yet
}

// New returns the crowd of a plan.
func New(p Plan) (*Crowd, error) {
	if p.Over != nil {
		p.Connections = len(p.Over.all)
	}
	if len(p.Arrivals) == 0 || p.Connections < 1 {
		return nil, errors.New("a crowd needs shoppers and connections")
	}
	var f form
	if p.Request == nil {
		var err error
		if f, err = p.Order.compile(p.Room); err != nil {
			return nil, err
		}
	}
	length := slices.Max(p.Arrivals) + p.GiveUpAfter
	c := &Crowd{
		plan: p, form: f, work: make(chan due, 64), empty: make(chan struct{}), out: int64(len(p.Arrivals)),
		calendar: calendar{pages: make([][]visit, length/page+1)},
		tried:    make([]uint16, len(p.Arrivals)), looked: make([]uint8, len(p.Arrivals)),
		Late: NewStopwatch(), Rejections: NewStopwatch(), Answers: NewStopwatch(),
		Accepted: NewStopwatch(), Felt: NewStopwatch(), Sure: NewStopwatch(),
		Sent: newSeries(length), Rejected: newSeries(length),
		counts: Counts{Rejected: map[string]int64{}, Unknown: map[string]int64{}, Status: map[int]int64{}},
	}
	if p.Room != "" {
		c.outcomes = slices.Repeat([]RoomOutcome{{Home: GaveUp}}, len(p.Arrivals))
	}
	for i, at := range p.Arrivals {
		c.calendar.write(at, visit{shopper: int32(i), waits: p.Room != ""})
	}
	return c, nil
}

// Run begins at start. It returns when all shoppers are home, time is up, or ctx has ended; and no request is in flight
// any more. A crowd runs once.
func (c *Crowd) Run(ctx context.Context, start time.Time) {
	c.start = start
	var all sync.WaitGroup
	over := c.plan.Over
	if over == nil {
		over = NewConnections(c.plan.Connections, To(c.plan.Front))
		defer over.Close()
	}
	busy := min(cmp.Or(c.plan.Busy, c.plan.Connections), c.plan.Connections)
	for i := range busy {
		all.Go(func() { c.carry(ctx, over.all, i, busy) })
	}
	c.turnPages(ctx)
	close(c.work)
	all.Wait()
	c.count(func(n *Counts) { n.Home[GaveUp] += c.out })
}

// Counts are those so far. It may be called while the crowd runs.
func (c *Crowd) Counts() Counts {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := c.counts
	n.Rejected, n.Unknown, n.Status = maps.Clone(n.Rejected), maps.Clone(n.Unknown), maps.Clone(n.Status)
	return n
}

func (c *Crowd) count(what func(*Counts)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	what(&c.counts)
}

// lasts is when all go home.
func (c *Crowd) lasts() time.Duration { return time.Duration(len(c.calendar.pages)) * page }

// turnPages calls up who is due, millisecond by millisecond. When all connections are taken it is late, and that is
// measured.
func (c *Crowd) turnPages(ctx context.Context) {
	tick := time.NewTicker(page)
	defer tick.Stop()
	home := time.After(c.lasts() - time.Since(c.start)) // also for those who are late
	for i := 0; i < len(c.calendar.pages); {
		select {
		case <-ctx.Done():
			return
		case <-c.empty:
			return
		case <-home:
			return
		case <-tick.C:
		}
		for last := int(time.Since(c.start) / page); i <= last && i < len(c.calendar.pages); i++ {
			for _, v := range c.calendar.takePage(i) {
				select {
				case c.work <- due{v, time.Duration(i) * page}:
				case <-ctx.Done():
					return
				case <-home:
					return
				}
			}
		}
	}
}

// carry makes one visit after another, on every step-th connection in turn.
func (c *Crowd) carry(ctx context.Context, all []*connection, first, step int) {
	r := requester{in: bufio.NewReaderSize(nil, 4<<10)}
	next := first
	for v := range c.work {
		l := all[next]
		l.requester = &r
		if next += step; next >= len(all) {
			next = first
		}
		now := time.Since(c.start)
		if ctx.Err() != nil || now >= c.lasts() {
			return
		}
		c.Late.Observe(now - v.at)
		switch {
		case v.lookUp:
			c.lookUp(ctx, l, v)
		case v.waits:
			c.wait(ctx, l, v)
		default:
			c.order(ctx, l, v)
		}
	}
}

// address is the number of the address that a shopper comes from.
func (c *Crowd) address(number int) int {
	if c.plan.Addresses > 0 {
		return number % c.plan.Addresses
	}
	return number
}

// order sends an order once, and then decides like a shopper whose browser runs the client script.
func (c *Crowd) order(ctx context.Context, l *connection, v due) {
	c.tried[v.shopper]++
	c.count(func(n *Counts) { n.Requests++ })
	sent := time.Since(c.start)
	c.Sent.Count(sent)
	number := c.plan.First + int(v.shopper)
	if c.plan.Request != nil {
		l.out = c.plan.Request(l.out[:0], number)
	} else {
		l.out = c.form.order(l.out[:0], number, c.address(number), c.passOf(v.shopper))
	}
	a, ok := l.exchange(ctx)
	at := time.Since(c.start)
	switch {
	case ok:
		c.observe(a, v.at, sent, at)
	case ctx.Err() != nil:
		c.count(func(n *Counts) { n.Unanswered++ })
		return
	default:
		c.count(func(n *Counts) { n.Broken++ })
		c.orderAgain(v.shopper, 0)
		return
	}
	switch how, final := a.ends(); {
	case a.accepted():
		c.Sure.Observe(at)
		c.links.Store(v.shopper, link{a.link, true})
		c.lookUpAfter(v.shopper, a.wait)
	case final:
		if how == Bought {
			c.Sure.Observe(at)
		}
		c.goHome(v.shopper, how)
	case !a.tellsNothing() || !c.plan.LookUp:
		c.orderAgain(v.shopper, a.wait)
	case a.link == "":
		c.goHome(v.shopper, Unsure)
	default:
		c.links.Store(v.shopper, link{path: a.link})
		c.lookUpAfter(v.shopper, time.Second)
	}
}

// observe counts and times an answer, of a request that was due, sent and answered at these times.
func (c *Crowd) observe(a answer, due, sent, at time.Duration) {
	c.Felt.Observe(at - due)
	switch {
	case a.accepted():
		c.Accepted.Observe(at - sent)
	case a.reason == "":
		c.Answers.Observe(at - sent)
	default:
		c.Rejected.Count(at)
		c.Rejections.Observe(at - sent)
	}
	c.count(func(n *Counts) { n.add(a) })
}

// maxReasons bounds the reasons that are counted one by one.
const maxReasons = 64

// add counts an answer.
func (n *Counts) add(a answer) {
	n.Status[a.status]++
	if a.accepted() {
		n.Accepted++
		return
	}
	if a.reason == "" {
		n.Admitted++
		if a.status >= 500 {
			n.Overloaded++
		}
		return
	}
	reasons := n.Rejected
	if a.is(reject.Reason.OutcomeUnknown) {
		reasons = n.Unknown
	}
	if _, known := reasons[a.reason]; !known && len(reasons) >= maxReasons {
		a.reason = "other"
	}
	reasons[a.reason]++
}

// link is where the gateway tells of an order.
type link struct {
	path     string
	accepted bool // it waits: it is asked about until it has ended
}

// maxLookups is how often a shopper asks what became of an order whose outcome is unknown.
const maxLookups = 6

// lookUp asks what became of an order.
func (c *Crowd) lookUp(ctx context.Context, l *connection, v due) {
	c.count(func(n *Counts) { n.Lookups++ })
	c.looked[v.shopper] = min(c.looked[v.shopper]+1, maxLookups)
	stored, _ := c.links.Load(v.shopper)
	of, _ := stored.(link)
	l.out = c.form.appendStatusRequest(l.out[:0], of.path, c.address(c.plan.First+int(v.shopper)))
	a, ok := l.exchange(ctx)
	switch {
	case ok && a.state == "sold":
		c.ended(of, func(n *Counts) { n.Delivered++ })
		c.goHome(v.shopper, Bought)
	case ok && a.hasNoOrder():
		c.ended(of, func(n *Counts) { n.Ended++ })
		c.goHome(v.shopper, Rejected)
	case of.accepted:
		c.lookUpAfter(v.shopper, max(a.wait, time.Second))
	case c.looked[v.shopper] >= maxLookups:
		c.goHome(v.shopper, Unsure)
	default:
		c.lookUpAfter(v.shopper, time.Second<<min(c.looked[v.shopper], 3))
	}
}

// ended counts an order that was accepted.
func (c *Crowd) ended(of link, what func(*Counts)) {
	if of.accepted {
		c.count(what)
	}
}

func (c *Crowd) lookUpAfter(shopper int32, pause time.Duration) {
	c.visitAgain(visit{shopper: shopper, lookUp: true}, pause+rand.N(500*time.Millisecond))
}

// orderAgain lets a shopper order once more, as long as there are tries.
func (c *Crowd) orderAgain(shopper int32, told time.Duration) {
	try := int(c.tried[shopper])
	if c.plan.Tries > 0 && try >= c.plan.Tries {
		c.goHome(shopper, GaveUp)
		return
	}
	c.visitAgain(visit{shopper: shopper}, c.plan.Pause(c.plan.First+int(shopper), try, told))
}

func (c *Crowd) visitAgain(v visit, pause time.Duration) {
	if !c.calendar.write(time.Since(c.start)+pause, v) {
		c.goHome(v.shopper, GaveUp)
	}
}

func (c *Crowd) goHome(shopper int32, how Ending) {
	if c.outcomes != nil {
		c.outcomes[shopper].Home = how
	}
	c.count(func(n *Counts) {
		n.Home[how]++
		if c.out--; c.out == 0 {
			close(c.empty)
		}
	})
}
