package demo

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"net/http"
	"sync"
	"time"

	"sluice/internal/load"
	"sluice/internal/periodic"
)

// Room is a waiting room that a crowd joins: most before the sale starts, a few after it. One who is called claims a
// pass and orders, but for a few who do not come. All others stay until the room is over.
type Room struct {
	Name   string
	Starts time.Time // of the sale: the draw is made then
}

const (
	lateOf20   = 19 // of 20 people one joins after the start
	absentOf20 = 7  // one does not come when called
	lookEvery  = 20 * time.Millisecond
	tickAtMost = 150 * time.Millisecond // between two states that a gateway has read one after the other
	maxRecord  = 4 << 20                // bytes of what is read of the room
)

func late(i int) bool   { return i%20 == lateOf20 }
func absent(i int) bool { return i%20 == absentOf20 }

// shopperOf is the user of a shopper, as the crowd writes it.
func shopperOf(i int) string { return fmt.Sprintf("%s%07d", shopperPrefix, i) }

// arrivals are when each of n people joins, from now on.
func (r *Room) arrivals(n int) (all []time.Duration) {
	starts := time.Until(r.Starts)
	for i := range n {
		at := starts * 3 / 4 * time.Duration(i) / time.Duration(n)
		if late(i) {
			at = starts + time.Second*time.Duration(i)/time.Duration(n)
		}
		all = append(all, at)
	}
	return all
}

// RoomReport tells what became of the people of a room, counted apart from what the room says of itself.
type RoomReport struct {
	Phase  string // that it published last
	Joined int64  // numbers that it has given out: one who was called and came too late joins again

	People int64 // who have one of these numbers, or several

	Early    int64    // people who joined before the start
	Half     [2]int64 // of these: who joined in the first half of the time, and in the second
	CalledOf [2]int64 // of these: who were called
	Called   int64    // all who were called
	Bought   int64    // of these: who went home with an order
	Absent   int64    // of these: who did not come
	Nothing  int64    // of these: who found nothing left, or came too late and heard the end
	Over     int64    // were told that the room is over, and never called
	Unjust   int64    // calls while nothing was free
	Wrong    int64    // people whom the record of the draw calls otherwise than the room did
	Verified int64    // people whose place was computed from the record
	Failed   error    // why the record could not be verified

	unaccountable int64 // people who neither were called, nor heard the end
}

// roomSight is what the public document has said so far. It is safe for concurrent use.
type roomSight struct {
	mu     sync.Mutex
	last   sight
	unjust int64
}

type sight struct {
	ServerTime int64 `json:"server_time_ms"`
	Phase      string
	Left       string
	Serving    int64
	Threshold  int64
	Issued     int64
}

// see compares a document with the one before. Between two that follow each other, and both say that nothing is free,
// no people may have been called. It does not judge where the gateway has read a state between them that was not seen.
func (s *roomSight) see(next sight) {
	s.mu.Lock()
	defer s.mu.Unlock()
	before := s.last
	s.last = next
	follows := next.ServerTime-before.ServerTime <= tickAtMost.Milliseconds()
	if follows && before.Left == "none" && next.Left == "none" &&
		(next.Serving > before.Serving || next.Threshold > before.Threshold) {
		s.unjust++
	}
}

func (s *roomSight) report() *RoomReport {
	s.mu.Lock()
	defer s.mu.Unlock()
	return &RoomReport{Phase: s.last.Phase, Joined: s.last.Issued, Unjust: s.unjust}
}

// watch reads the public document until ctx ends, and once more then: the last people join just before the end.
func (c Crowd) watch(ctx context.Context, seen *roomSight) {
	look := func(ctx context.Context) {
		var next sight
		if text, err := c.fetch(ctx, ""); err == nil && json.Unmarshal(text, &next) == nil {
			seen.see(next)
		}
	}
	periodic.After(ctx, lookEvery, look)
	look(context.WithoutCancel(ctx))
}

// fetch reads what the gateway publishes of the room.
func (c Crowd) fetch(ctx context.Context, what string) ([]byte, error) {
	at := "http://" + c.Front + "/.sluice/room/" + c.Room.Name + what
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, at, nil)
	if err != nil {
		return nil, err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	return io.ReadAll(io.LimitReader(resp.Body, maxRecord))
}

// countOutcomes counts what became of all, and compares it with what the record of the draw alone says.
func (c Crowd) countOutcomes(ctx context.Context, people *load.Crowd, r *RoomReport) {
	record, err := c.fetch(context.WithoutCancel(ctx), "/draw")
	r.Failed = err
	for i := range c.Shoppers {
		outcome := people.RoomOutcome(i)
		drawn := c.Room.draws(outcome)
		r.add(i, c.Shoppers, outcome, drawn)
		if !drawn || r.Failed != nil {
			continue
		}
		var at int64
		if at, r.Failed = verifyPlace(record, shopperOf(i)); r.Failed != nil {
			continue
		}
		r.Verified++
		// One who has left is not told of units that came back.
		if outcome.Called != (at != 0) && (outcome.Called || at < outcome.Over) {
			r.Wrong++
		}
	}
}

// draws reports whether a shopper takes part in the draw. On a busy machine people join later than is planned.
func (r *Room) draws(outcome load.RoomOutcome) bool {
	return outcome.Joined != 0 && outcome.Joined < r.Starts.UnixMilli()
}

func (r *RoomReport) add(i, all int, outcome load.RoomOutcome, drawn bool) {
	half := 0
	if i >= all/2 {
		half = 1
	}
	called, home := outcome.Called, outcome.Home
	for _, c := range []struct {
		is bool
		to *int64
	}{
		{outcome.Joined != 0, &r.People},
		{drawn, &r.Early}, {drawn, &r.Half[half]}, {drawn && called, &r.CalledOf[half]}, {called, &r.Called},
		{called && (home == load.Bought || home == load.HadOne), &r.Bought},
		{called && home == load.GaveUp && absent(i), &r.Absent},
		{called && home == load.SoldOut, &r.Nothing},
		{!called && home == load.SoldOut, &r.Over},
		{!called && home != load.SoldOut, &r.unaccountable},
	} {
		if c.is {
			*c.to++
		}
	}
}

// bias is by how many standard deviations the two halves differ from what a fair draw gives.
func (r *RoomReport) bias() float64 {
	n, called := float64(r.Half[0]+r.Half[1]), float64(r.CalledOf[0]+r.CalledOf[1])
	if n < 2 || called == 0 || called == n {
		return 0
	}
	share := float64(r.Half[0]) / n
	return math.Abs(float64(r.CalledOf[0])-called*share) /
		math.Sqrt(called*share*(1-share)*(n-called)/(n-1))
}

// mostBias is exceeded by chance in one of 16,000 fair draws.
const mostBias = 4

// check complains of every promise that the room broke.
func (r *RoomReport) check(complain func(wrong bool, format string, args ...any), interrupted bool) {
	complain(r.Failed != nil && !interrupted, "verify the draw: %w", r.Failed)
	complain(r.Unjust != 0, "%d times people were called while nothing was free", r.Unjust)
	complain(r.Wrong != 0, "%d people were called otherwise than the record of the draw says", r.Wrong)
	complain(r.bias() > mostBias, "of the first half %d of %d were called, and %d of %d of the second: that is no chance",
		r.CalledOf[0], r.Half[0], r.CalledOf[1], r.Half[1])
	complain(!interrupted && r.unaccountable != 0, "%d people were neither called nor heard the end while they waited "+
		"(--patience)", r.unaccountable)
}
