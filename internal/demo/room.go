package demo

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"

	"sluice/internal/crowd"
)

// RoomCrowd is a number of people who wait for a sale in the waiting room of the gateway in front of the shop. Most of
// them join before the start, a few after it. Each one waits for news. One who is called claims a pass and orders, but
// for a few who do not come. All stay until the room is over.
type RoomCrowd struct {
	Front       string // host:port of the gateway
	Room        string
	SKU         string
	People      int
	Starts      time.Time     // of the sale: the draw is made then
	GiveUpAfter time.Duration // after the start; then the last of them goes home
	Ledger      func() Ledger

	// Verify tells from the record of the draw when a user was called, in Unix ms; 0 = the user was not.
	Verify func(record []byte, user string) (calledAt int64, err error)
}

const (
	lateOf20   = 19 // of 20 people one joins after the start
	absentOf20 = 7  // one does not come when called
	lookEvery  = 20 * time.Millisecond
	tickAtMost = 150 * time.Millisecond // between two states that a gateway has read one after the other
)

func late(i int) bool   { return i%20 == lateOf20 }
func absent(i int) bool { return i%20 == absentOf20 }

// Run lets the crowd into the room, shows on out how it goes, and reports when the room is over or time is up.
func (c *RoomCrowd) Run(ctx context.Context, shop *Shop, out io.Writer) (RoomReport, error) {
	if err := enoughDescriptors(c.People); err != nil {
		return RoomReport{}, err
	}
	line := &http.Transport{MaxIdleConnsPerHost: c.People, DisableCompression: true}
	defer line.CloseIdleConnections()
	visit := &roomVisit{RoomCrowd: c, client: &http.Client{Transport: line}, people: make([]visitor, c.People)}
	begin := time.Now()
	waiting, cancel := context.WithDeadline(ctx, c.Starts.Add(c.GiveUpAfter))
	defer cancel()
	watched, stop := context.WithCancel(ctx)
	var watch, all sync.WaitGroup
	watch.Go(func() { visit.watch(watched, begin, shop, out) })
	joinWithin := time.Until(c.Starts) * 3 / 4
	for i := range c.People {
		joins := begin.Add(joinWithin * time.Duration(i) / time.Duration(c.People))
		if late(i) {
			joins = c.Starts.Add(time.Second * time.Duration(i) / time.Duration(c.People))
		}
		all.Go(func() { visit.people[i] = visit.live(waiting, i, joins) })
	}
	all.Wait()
	c.awaitDecisions(waiting, shop)
	stop()
	watch.Wait()
	return visit.report(ctx, shop, time.Since(begin)), nil
}

// awaitDecisions waits until no unit is reserved any more.
func (c *RoomCrowd) awaitDecisions(ctx context.Context, shop *Shop) {
	for c.Ledger().Held > 0 || shop.Totals().InFlight > 0 {
		select {
		case <-time.After(undecided):
		case <-ctx.Done():
			return
		}
	}
}

// sleep waits for d, or until ctx has ended.
func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
	return ctx.Err()
}

// visitor is what became of one person.
type visitor struct {
	joined, early, called, claimed, bought, soldOut, over bool
	calledAt, leftAt                                      int64 // Unix ms of the gateway
	err                                                   error
}

// roomVisit is a crowd that is on its way.
type roomVisit struct {
	*RoomCrowd
	client *http.Client
	people []visitor
	seen   roomSight
}

var errNoPlace = errors.New("no place in the room is told")

// place is what a person reads of the own place.
type place struct {
	Phase, State, Ticket, Pass string
	ServerTime                 int64 `json:"server_time_ms"`
	ClaimUntil                 int64 `json:"claim_until_ms"`
	Poll                       int64 `json:"poll_ms"`
}

// ask asks as person i at an address of the room, again where the gateway has no time: the machine may be busy.
func (v *roomVisit) ask(ctx context.Context, i int, method, action string, fields ...string) (p place, err error) {
	for range 20 {
		if p, err = v.askOnce(ctx, i, method, action, fields...); err == nil || sleep(ctx, quickest) != nil {
			break
		}
	}
	return p, err
}

func (v *roomVisit) askOnce(ctx context.Context, i int, method, action string, fields ...string) (p place, err error) {
	resp, err := v.send(ctx, i, method, "/.sluice/room/"+v.Room+action, fields...)
	if err != nil {
		return p, err
	}
	defer resp.Body.Close()
	if reason := resp.Header.Get(crowd.ReasonHeader); reason == "sold_out" || reason == "ended" { // who comes too late
		return place{Phase: "over", State: "over", ServerTime: time.Now().UnixMilli()}, nil
	}
	if err = json.NewDecoder(resp.Body).Decode(&p); err != nil || p.State == "" {
		return p, fmt.Errorf("%s %s: status %d: %w", method, action, resp.StatusCode, errors.Join(err, errNoPlace))
	}
	return p, nil
}

func (v *roomVisit) send(ctx context.Context, i int, method, path string, fields ...string) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, method, "http://"+v.Front+path, nil)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Cookie", uidCookie+"="+shopperOf(i))
	req.Header.Set("X-Forwarded-For", fmt.Sprintf("10.%d.%d.%d", i>>16&255, i>>8&255, i&255))
	req.Header.Set("Accept", "application/json")
	for n := 0; n+1 < len(fields); n += 2 {
		req.Header.Set(fields[n], fields[n+1])
	}
	return v.client.Do(req)
}

func shopperOf(i int) string { return fmt.Sprint(shopperPrefix, i) }

// live joins at joins and waits until person i is called and has ordered, or the room is over.
func (v *roomVisit) live(ctx context.Context, i int, joins time.Time) (me visitor) {
	me.early = !late(i)
	if sleep(ctx, time.Until(joins)) != nil {
		return me
	}
	p, err := v.ask(ctx, i, "POST", "/join")
	if err != nil {
		me.err = err
		return me
	}
	if p.Phase == "over" {
		me.over, me.leftAt = true, p.ServerTime
		return me
	}
	me.joined = true
	ticket := p.Ticket
	for ctx.Err() == nil {
		p, err := v.ask(ctx, i, "GET", "/me", "Sluice-Ticket", ticket, "Prefer", "wait=20")
		switch {
		case err != nil:
			me.err = err
			return me
		case p.State == "called" && !me.called:
			me.called, me.calledAt = true, p.ServerTime
			if !absent(i) {
				v.buy(ctx, i, ticket, &me)
			}
			return me
		case p.Phase == "over":
			me.over, me.leftAt = true, p.ServerTime
			return me
		}
		if p.Phase != "pre_queue" && p.State != "waiting" {
			_ = sleep(ctx, time.Duration(p.Poll)*time.Millisecond)
		}
	}
	return me
}

// buy claims the pass and orders with it.
func (v *roomVisit) buy(ctx context.Context, i int, ticket string, me *visitor) {
	p, err := v.ask(ctx, i, "POST", "/pass", "Sluice-Ticket", ticket)
	if me.err = err; err != nil {
		return
	}
	me.claimed = p.Pass != ""
	for sleep(ctx, 0) == nil {
		resp, err := v.send(ctx, i, "POST", "/api/seckill/"+v.SKU+"/order", "Sluice-Pass", p.Pass)
		if me.err = err; err != nil {
			return
		}
		_, _ = io.Copy(io.Discard, resp.Body)
		resp.Body.Close()
		me.bought = resp.StatusCode == http.StatusOK
		me.soldOut = resp.Header.Get(crowd.ReasonHeader) == "sold_out"
		if resp.StatusCode != http.StatusTooManyRequests {
			return
		}
		_ = sleep(ctx, quickest)
	}
}
