package loadtest

import (
	"context"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// visit is a buyer who comes at a time: to order, or to look what became of the order.
type visit struct {
	buyer int32
	look  bool
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

// crowd is all buyers. Each is a few bytes; those who are asking just now have a connection.
type crowd struct {
	plan     Plan
	form     form
	start    time.Time
	calendar calendar
	arrive   []time.Duration
	work     chan due
	out      atomic.Int64  // buyers who are not home yet
	empty    chan struct{} // closed when it is

	// Of each buyer, who is one visit at a time.
	tried  []uint8
	looked []uint8
	links  sync.Map // buyer -> where the gate tells of the order

	late      *Stopwatch
	answers   *Stopwatch // rejections of the gate, from when the request was sent
	orders    *Stopwatch // answers of the shop, likewise
	felt      *Stopwatch // both, from when the buyer wanted it
	sent      series
	rejection series

	requests, looks, broken atomic.Int64
	home                    [numEndings]atomic.Int64
	mu                      sync.Mutex
	rejected                map[string]int64
}

func newCrowd(p Plan, f form) *crowd {
	all := p.arrivals()
	length := slices.Max(all) + p.Patience
	c := &crowd{
		plan: p, form: f, arrive: all, work: make(chan due, 64), empty: make(chan struct{}),
		calendar: calendar{pages: make([][]visit, length/page+1)},
		tried:    make([]uint8, p.Buyers), looked: make([]uint8, p.Buyers),
		late: NewWatch(), answers: NewWatch(), orders: NewWatch(), felt: NewWatch(),
		sent: newSeries(length), rejection: newSeries(length), rejected: map[string]int64{},
	}
	for i, at := range c.arrive {
		c.calendar.write(at, visit{buyer: int32(i)})
	}
	c.out.Store(int64(p.Buyers))
	c.start = time.Now()
	return c
}

// run returns when everybody is home, time is up, or ctx has ended; and no request is in flight any more.
func (c *crowd) run(ctx context.Context) {
	var all sync.WaitGroup
	for range c.plan.Connections {
		all.Go(func() { c.carry(ctx) })
	}
	c.turnPages(ctx)
	close(c.work)
	all.Wait()
	c.home[gaveUp].Add(c.out.Load())
}

// lasts is when everybody goes home.
func (c *crowd) lasts() time.Duration { return time.Duration(len(c.calendar.pages)) * page }

// turnPages calls up who is due, millisecond by millisecond. When all connections are taken it is late, and that is
// told.
func (c *crowd) turnPages(ctx context.Context) {
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

// carry makes one visit after another on one connection.
func (c *crowd) carry(ctx context.Context) {
	l := line{front: c.plan.Front}
	defer l.close()
	for v := range c.work {
		now := time.Since(c.start)
		if ctx.Err() != nil || now >= c.lasts() {
			return
		}
		c.late.Observe(now - v.at)
		if v.look {
			c.lookUp(ctx, &l, v)
		} else {
			c.press(ctx, &l, v)
		}
	}
}

// press asks once for an order, and then decides like a buyer whose browser runs the client script.
func (c *crowd) press(ctx context.Context, l *line, v due) {
	c.tried[v.buyer]++
	c.requests.Add(1)
	sent := time.Since(c.start)
	c.sent.count(sent)
	buyer := int(v.buyer)
	l.out = c.form.order(l.out[:0], buyer, buyer%c.plan.Addresses)
	a, ok := l.exchange(ctx)
	at := time.Since(c.start)
	if !ok {
		c.broken.Add(1)
		c.again(v.buyer, 500*time.Millisecond)
		return
	}
	c.felt.Observe(at - v.at)
	if a.reason == "" {
		c.orders.Observe(at - sent)
	} else {
		c.rejection.count(at)
		c.answers.Observe(at - sent)
		c.count(a.reason)
	}
	switch end, final := a.ends(); {
	case final:
		c.finishVisit(end)
	case a.unsure() && a.link != "":
		c.links.Store(v.buyer, a.link)
		c.later(v.buyer, time.Second, true)
	case a.unsure():
		c.finishVisit(unsure)
	default:
		c.again(v.buyer, max(a.wait, 500*time.Millisecond))
	}
}

// mostLooks is how often a buyer asks what became of an order.
const mostLooks = 6

// lookUp asks what became of an order.
func (c *crowd) lookUp(ctx context.Context, l *line, v due) {
	c.looks.Add(1)
	c.looked[v.buyer]++
	link, _ := c.links.Load(v.buyer)
	text, _ := link.(string)
	l.out = c.form.appendStatusRequest(l.out[:0], text, int(v.buyer)%c.plan.Addresses)
	a, ok := l.exchange(ctx)
	switch {
	case ok && a.state == "confirmed":
		c.finishVisit(bought)
	case ok && (a.state == "released" || a.state == "refunded"):
		c.finishVisit(turnedAway)
	case c.looked[v.buyer] >= mostLooks:
		c.finishVisit(unsure)
	default:
		c.later(v.buyer, time.Second<<min(c.looked[v.buyer], 3), true)
	}
}

// again lets a buyer press once more, after a pause and half a second of their own, as long as there are tries.
func (c *crowd) again(buyer int32, pause time.Duration) {
	if int(c.tried[buyer]) >= c.plan.Tries {
		c.finishVisit(gaveUp)
		return
	}
	c.later(buyer, pause, false)
}

func (c *crowd) later(buyer int32, pause time.Duration, look bool) {
	at := time.Since(c.start) + pause + rand.N(500*time.Millisecond)
	if !c.calendar.write(at, visit{buyer, look}) {
		c.finishVisit(gaveUp)
	}
}

func (c *crowd) finishVisit(how ending) {
	c.home[how].Add(1)
	if c.out.Add(-1) == 0 {
		close(c.empty)
	}
}

// mostReasons bounds the words that are counted one by one.
const mostReasons = 64

func (c *crowd) count(reason string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, known := c.rejected[reason]; !known && len(c.rejected) >= mostReasons {
		reason = "other"
	}
	c.rejected[reason]++
}
