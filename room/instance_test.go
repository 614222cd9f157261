package room

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"sluice/internal/redistest"
	"sluice/internal/storetest"
	"sluice/internal/testkit"
	"sluice/proxy"
	"sluice/proxy/reject"
)

func TestMain(m *testing.M) { redistest.Main(m) }

// stand is one room on one instance, with a stock that the test sets.
type stand struct {
	*Room
	log   *testkit.Log
	stock atomic.Pointer[KnownStock]
}

var key = []byte("0123456789abcdef-key")

func open(t testing.TB, r *redistest.Server, change func(*Options)) *stand {
	t.Helper()
	link := storetest.Link(t, r.Addr)
	s := &stand{log: &testkit.Log{}}
	s.stock.Store(&KnownStock{Known: true, Epoch: 1, Version: 1, Free: 2, Hold: time.Minute})
	began := time.Now().Add(-time.Minute).UnixMilli()
	o := Options{
		Rules: Rules{Name: "r", Opens: time.Minute, Pass: time.Minute, ClaimWithin: time.Minute, Overshoot: 1,
			PollFloor: 100 * time.Millisecond, PollCeiling: 400 * time.Millisecond}, // a notice of 1.1 s
		MaxParked: 100, Few: 5, Store: NewStore(link, "shop", "r"), Stock: s.stock.Load,
		Sale: func() Sale { return Sale{Starts: began, Ends: began + 3_600_000} },
		Now:  func() int64 { return time.Now().UnixMilli() }, Log: slog.New(slog.NewTextHandler(s.log, nil)),
	}
	if change != nil {
		change(&o)
	}
	s.Room = testkit.Must[*Room](t)(New(o, [][]byte{key}))
	s.Start()
	t.Cleanup(s.Close)
	return s
}

// set is what this instance knows of the units from now on.
func (s *stand) set(free, held int64) {
	next := *s.stock.Load()
	next.Version, next.Free, next.Held = next.Version+1, free, held
	s.stock.Store(&next)
}

// admits reports whether r admits an order with a pass.
func admits(r *Room, at int64, sku, user, pass []byte) bool {
	reason, _ := r.Admits(at, sku, user, pass)
	return reason == reject.Admitted
}

func (s *stand) inPhase(t testing.TB, want Phase) {
	t.Helper()
	testkit.Eventually(t, "the phase is "+string(want), func() bool { return s.view.Load().state.Phase == want })
}

// there is a client that stays.
type there struct {
	wake    chan struct{}
	resumed bool
}

func (*there) Gone() bool { return false }

func (*there) StepAside() {}

func (c *there) Suspend() func() {
	c.wake = make(chan struct{})
	return func() { close(c.wake) }
}

func (c *there) Resumed() bool { return c.resumed }

// answer is that of s, also to a client that waits for news.
func (s *stand) answer(q *proxy.RoomQuestion) proxy.RoomAnswer {
	client := new(there)
	q.Client = client
	a := s.Answer(q)
	if a.Suspended {
		<-client.wake
		client.resumed, q.Time = true, time.Now().UnixMilli()
		a = s.Answer(q)
	}
	return a
}

// person asks as one user.
type person struct{ user, signed, pass string }

func (p *person) ask(t *testing.T, s *stand, post bool, action, prefer string) (m me, a proxy.RoomAnswer) {
	t.Helper()
	a = s.answer(&proxy.RoomQuestion{Action: []byte(action), Post: post, User: []byte(p.user), Signed: []byte(p.signed),
		Pass: []byte(p.pass), Prefer: []byte(prefer), Time: time.Now().UnixMilli()})
	if a.Rejection != reject.Admitted {
		return m, a
	}
	if err := json.Unmarshal(a.Body, &m); err != nil {
		t.Errorf("%s: %v", a.Body, err)
	}
	if m.Signed != "" {
		p.signed = m.Signed
	}
	if m.Pass != "" {
		p.pass = m.Pass
	}
	return m, a
}

// claims has p claim a pass as soon as its notice is over.
func (p *person) claims(t *testing.T, s *stand) (m me, a proxy.RoomAnswer) {
	t.Helper()
	testkit.Eventually(t, p.user+" has a pass", func() bool {
		m, a = p.ask(t, s, true, "pass", "")
		return a.Status != http.StatusConflict
	})
	return m, a
}

func TestRoom_CallsForFreeUnitsAndForThoseWhoDoNotUseTheirPass(t *testing.T) {
	t.Parallel()
	s := open(t, redistest.Start(t), nil)
	s.inPhase(t, Open)
	people := make([]*person, 5)
	for i := range people {
		people[i] = &person{user: fmt.Sprint("u", i)}
		if m, a := people[i].ask(t, s, true, "join", ""); m.Number != int64(i+1) ||
			!strings.Contains(a.Cookie, "; Max-Age=1209600;") { // the browser may be closed meanwhile
			t.Fatalf("%d joined as %+v, %s", i, m, a.Cookie)
		}
	}
	testkit.Eventually(t, "two are called", func() bool { return s.view.Load().state.Called == 2 })
	on := s.view.Load().state
	from := func(step Step) int64 { return step.At + s.o.Rules.Notice(on).Milliseconds() }
	second := on.Steps[len(on.Steps)-1] // of another step, if the second has changed between the two
	for i, want := range []int64{from(on.Steps[0]), from(second), 0, 0, 0} {
		m, _ := people[i].ask(t, s, false, "me", "")
		if m.State != "waiting" || m.ClaimFrom != want || want != 0 && m.Poll != want-m.ServerTime {
			t.Errorf("%d: %+v, want to claim from %d on", i, m, want)
		}
		if _, a := people[i].ask(t, s, true, "pass", ""); a.Status != 409 {
			t.Errorf("a pass for one who waits: %d", a.Status)
		}
	}
	if m, a := people[0].claims(t, s); m.ServerTime < from(on.Steps[0]) || a.Status != 200 || m.Pass == "" ||
		!strings.Contains(a.Cookie, "; Max-Age=60;") {
		t.Errorf("a pass: %d %+v %q", a.Status, m, a.Cookie)
	}
	now := time.Now().UnixMilli()
	if !admits(s.Room, now, nil, []byte("u0"), []byte(people[0].pass)) || admits(s.Room, now, nil, []byte("u1"),
		[]byte(people[0].pass)) {
		t.Error("a pass is not of its user alone")
	}
	s.Used([]byte("u0")) // one of the two units
	s.set(1, 1)
	testkit.Eventually(t, "the pass is used", func() bool { return s.view.Load().state.Used == 1 })
	if called := s.view.Load().state.Called; called != 2 { // the other one who was called may still come
		t.Errorf("%d are called", called)
	}
}

// Two shops on one Redis have the same key, and rooms of one name: each asks for tickets of its own.
func TestRoom_TicketIsOfItsShopAlone(t *testing.T) {
	t.Parallel()
	r := redistest.Start(t)
	one := open(t, r, nil)
	two := open(t, r, func(o *Options) { o.Store = NewStore(o.Store.link, "another", "r") })
	one.inPhase(t, Open)
	two.inPhase(t, Open)
	p := &person{user: "u0"}
	if m, _ := p.ask(t, one, true, "join", ""); m.Number != 1 {
		t.Fatalf("%+v", m)
	}
	if m, _ := p.ask(t, two, false, "me", ""); m.State != "none" || m.Number != 0 {
		t.Errorf("another shop: %+v", m)
	}
	if m, a := p.ask(t, one, false, "me", ""); m.Number != 1 || a.Rejection != reject.Admitted {
		t.Errorf("its own shop: %+v %+v", m, a)
	}
}

func TestRoom_OneUserCannotTakeManyNumbers(t *testing.T) {
	t.Parallel()
	s := open(t, redistest.Start(t), nil)
	s.set(0, 1)
	s.inPhase(t, LastChance)
	for i := range 20 {
		greedy := &person{user: "greedy"} // without its ticket
		_, a := greedy.ask(t, s, true, "join", "")
		if i < 3 && a.Status != 200 || i >= 3 && (a.Rejection != reject.Rate || a.Wait <= 0 || a.Wait > time.Minute) {
			t.Errorf("join %d: %d %v, wait %v", i, a.Status, a.Rejection, a.Wait)
		}
	}
	other := &person{user: "other"}
	for range 10 { // with its ticket it takes one number
		if m, a := other.ask(t, s, true, "join", ""); a.Status != 200 || m.Number != 4 {
			t.Errorf("another user: %d %+v", a.Status, m)
		}
	}
}

func TestRoom_RedisAwayCallsNoMoreAndChecksWithoutIt(t *testing.T) {
	t.Parallel()
	r := redistest.Start(t)
	s := open(t, r, nil)
	s.set(1, 0)
	s.inPhase(t, Open)
	a, b := &person{user: "a"}, &person{user: "b"}
	a.ask(t, s, true, "join", "")
	b.ask(t, s, true, "join", "")
	testkit.Eventually(t, "one of two is called", func() bool {
		state := s.view.Load().state
		return state.Serving == 1 && state.Issued == 2
	})
	r.Kill()
	testkit.Eventually(t, "the document says how old it is", func() bool {
		var d Document
		if err := json.Unmarshal(s.view.Load().doc, &d); err != nil {
			t.Fatal(err)
		}
		return d.Stale >= 1000
	})
	if m, _ := b.ask(t, s, false, "me", ""); m.State != "waiting" || m.Number != 2 || m.Stale == 0 {
		t.Errorf("%+v", m)
	}
	if m, ans := a.claims(t, s); ans.Status != 200 || m.Pass == "" {
		t.Errorf("the pass of one who is called: %d %+v", ans.Status, m)
	}
	for range 2 * joinBurst { // they take no numbers
		if _, ans := (&person{user: "c"}).ask(t, s, true, "join", ""); ans.Rejection != reject.Overloaded {
			t.Errorf("joining: %v", ans.Rejection)
		}
	}
	good := func() bool { return admits(s.Room, time.Now().UnixMilli(), nil, []byte("a"), []byte(a.pass)) }
	if !good() {
		t.Error("a pass is no good while Redis is away")
	}
	late := open(t, r, nil) // it has started meanwhile: it knows neither the room nor its passes
	if m, _ := b.ask(t, late, false, "me", ""); m.State != "waiting" || m.Phase != Hold || m.Number != 2 {
		t.Errorf("an instance that has just started: %+v", m)
	}
	if admits(late.Room, time.Now().UnixMilli(), nil, []byte("a"), []byte(a.pass)) {
		t.Error("an instance that has just started accepts a pass")
	}
	r.Restart() // it has lost everything
	testkit.Eventually(t, "the room is back",
		func() bool { return s.log.Count(`level=WARN msg="room: Redis has lost the room`) == 1 })
	if m, _ := b.ask(t, s, true, "join", ""); m.Number != 2 || m.State != "waiting" {
		t.Errorf("%+v", m)
	}
	if m, _ := (&person{user: "c"}).ask(t, s, true, "join", ""); m.Number != 3 {
		t.Errorf("%+v", m)
	}
	if called := s.view.Load().state.Called; called != 1 || !good() {
		t.Errorf("%d are called, and the pass from before is good: %v", called, good())
	}
}

// Redis comes back with data of before an operator said something. An instance that knows it says it again.
func TestRoom_WhatOperatorsSaidOutlastsTheTailOfRedis(t *testing.T) {
	t.Parallel()
	r := redistest.Start(t)
	s := open(t, r, nil)
	s.set(1, 0)
	s.inPhase(t, Open)
	if err := r.Client.Save(t.Context()).Err(); err != nil {
		t.Fatal(err)
	}
	say := func(field, value string) {
		t.Helper()
		if err := s.Set(t.Context(), field, value); err != nil {
			t.Fatal(err)
		}
	}
	say(FieldRate, "0.5")
	say(FieldMessage, "later")
	say(FieldOverride, OverrideHold)
	s.inPhase(t, Hold)
	r.Kill()
	r.Restart()
	testkit.Eventually(t, "it is said again", func() bool {
		return s.log.Count("Redis has lost what an operator said") == 1
	})
	other := open(t, r, nil)
	other.inPhase(t, Hold)
	if state := other.view.Load().state; state.Rate != 0.5 || state.Message != "later" {
		t.Errorf("rate %v, message %q", state.Rate, state.Message)
	}
	say(FieldOverride, "")
	for _, one := range []*stand{s, other} {
		one.inPhase(t, Open)
	}
	if n := s.log.Count("Redis has lost what an operator said"); n != 1 {
		t.Errorf("it is said again %d times", n)
	}
}

// An operator has the answer of a word, and Redis loses it before the instance has read the room again.
func TestRoom_AWordIsKnownAtOnceWhereItWasSaid(t *testing.T) {
	t.Parallel()
	r := redistest.Start(t)
	s := open(t, r, nil)
	s.inPhase(t, Open)
	if err := r.Client.Save(t.Context()).Err(); err != nil {
		t.Fatal(err)
	}
	if err := s.Set(t.Context(), FieldOverride, OverrideHold); err != nil {
		t.Fatal(err)
	}
	r.Kill()
	r.Restart()
	s.inPhase(t, Hold)
	open(t, r, nil).inPhase(t, Hold)
}

// A reload puts another Room in the place of one while Redis is away, which then comes back without anything.
func TestRoom_AReloadWhileRedisIsAwayForgetsNothing(t *testing.T) {
	t.Parallel()
	r := redistest.Start(t)
	s := open(t, r, nil)
	s.inPhase(t, Open)
	(&person{user: "a"}).ask(t, s, true, "join", "")
	testkit.Eventually(t, "the number is known", func() bool { return s.view.Load().state.Issued == 1 })
	if err := s.Set(t.Context(), FieldOverride, OverrideHold); err != nil {
		t.Fatal(err)
	}
	s.inPhase(t, Hold)
	opened := s.view.Load().state.Opened
	r.Kill()
	next := open(t, r, func(o *Options) { o.Before = s.Room })
	s.Retire()
	r.Restart()
	if err := r.Client.FlushAll(t.Context()).Err(); err != nil {
		t.Fatal(err)
	}
	testkit.Eventually(t, "the room is there again", func() bool {
		return r.Client.Exists(t.Context(), next.o.Store.keys.room).Val() == 1
	})
	next.inPhase(t, Hold)
	testkit.Eventually(t, "nothing is forgotten", func() bool {
		state := next.view.Load().state
		return state.Opened == opened && state.Issued == 1 && next.view.Load().word == OverrideHold
	})
	later := open(t, r, nil)
	later.inPhase(t, Hold)
	if got := later.view.Load().state; got.Opened != opened || got.Issued != 1 {
		t.Errorf("%+v", got)
	}
}

func TestRoom_WhoComesTooLateGetsANewNumber(t *testing.T) {
	t.Parallel()
	s := open(t, redistest.Start(t), func(o *Options) { o.Rules.ClaimWithin = 5 * time.Second })
	s.set(1, 0)
	s.inPhase(t, Open)
	late := &person{user: "late"}
	late.ask(t, s, true, "join", "")
	testkit.Eventually(t, "it is called", func() bool { return s.view.Load().state.Serving == 1 })
	first := late.signed
	again := func() (m me, a proxy.RoomAnswer) { // ten seconds later
		q := &proxy.RoomQuestion{Action: []byte("join"), Post: true, User: []byte("late"), Signed: []byte(first),
			Time: time.Now().Add(10 * time.Second).UnixMilli(), Client: &there{}}
		a = s.Answer(q)
		if err := json.Unmarshal(a.Body, &m); err != nil {
			t.Fatal(err)
		}
		return m, a
	}
	for range 3 {
		(&person{user: "other"}).ask(t, s, true, "join", "")
	}
	testkit.Eventually(t, "all numbers are known", func() bool { return s.view.Load().state.Issued == 4 })
	if m, a := again(); m.Number != 5 || m.State != "waiting" { // behind all: a return is called as all others are
		t.Errorf("%d %+v", a.Status, m)
	}
}

// Who comes too early is told when the room opens: at the start of the sale it would be too late for a draw.
func TestRoom_WhoComesTooEarlyIsToldWhenItOpens(t *testing.T) {
	t.Parallel()
	starts := time.Now().Add(time.Hour).UnixMilli()
	s := open(t, redistest.Start(t), func(o *Options) {
		o.Sale = func() Sale { return Sale{Starts: starts, Ends: starts + 3_600_000} }
	})
	s.inPhase(t, Closed)
	if _, a := (&person{user: "a"}).ask(t, s, true, "join", ""); a.Rejection != reject.NotStarted ||
		a.Wait > 59*time.Minute || a.Wait < 30*time.Minute {
		t.Errorf("%v, wait %v", a.Rejection, a.Wait)
	}
}

func TestRoom_APassIsOfItsSale(t *testing.T) {
	t.Parallel()
	var sale atomic.Pointer[Sale]
	now := time.Now().UnixMilli()
	sale.Store(&Sale{Starts: now - 60_000, Ends: now + 3_600_000})
	s := open(t, redistest.Start(t), func(o *Options) { o.Sale = func() Sale { return *sale.Load() } })
	s.inPhase(t, Open)
	user := []byte("a")
	p := &person{user: "a"}
	p.ask(t, s, true, "join", "")
	p.claims(t, s)
	if !admits(s.Room, time.Now().UnixMilli(), nil, user, []byte(p.pass)) {
		t.Fatal("the pass is no good")
	}
	ends := time.Now().UnixMilli() + 4000 // the room hears of it before
	sale.Store(&Sale{Starts: now - 60_000, Ends: ends})
	s.inPhase(t, Over)
	sale.Store(&Sale{Starts: ends, Ends: ends + 3_600_000})
	s.inPhase(t, Open)
	if admits(s.Room, time.Now().UnixMilli(), nil, user, []byte(p.pass)) {
		t.Error("the pass of the sale before is good")
	}
}

func TestRoom_ChecksAllocateNothing(t *testing.T) {
	s := open(t, redistest.Start(t), func(o *Options) { o.Sells = func(sku []byte) bool { return string(sku) == "1001" } })
	s.inPhase(t, Open)
	now := time.Now().UnixMilli()
	sku, user := []byte("1001"), []byte("u1")
	good := s.passes.Append(nil, s.view.Load().passes, user, now+1)
	if !admits(s.Room, now, sku, user, good) || admits(s.Room, now, sku, user, nil) ||
		!admits(s.Room, now, []byte("x"), user, nil) {
		t.Fatal("passes are not checked")
	}
	if n := testing.AllocsPerRun(100, func() {
		admits(s.Room, now, sku, user, good)
		admits(s.Room, now, sku, user, good[1:])
	}); n > 0.5 && !raced { // the room's own goroutine may allocate meanwhile
		t.Errorf("%v allocations", n)
	}
}

// Operators read what is wrong with a pass. Where the room is over people hear so, and not that they should wait.
func TestRoom_SaysWhyAnOrderIsRejected(t *testing.T) {
	t.Parallel()
	s := open(t, redistest.Start(t), func(o *Options) { o.Sells = func(sku []byte) bool { return string(sku) == "1001" } })
	s.inPhase(t, Open)
	now, user := time.Now().UnixMilli(), []byte("u1")
	until := func(at int64, user string) []byte {
		return s.passes.Append(nil, s.view.Load().passes, []byte(user), at)
	}
	says := func(pass []byte, reason reject.Reason, cause reject.Cause) {
		t.Helper()
		if got, why := s.Admits(now, []byte("1001"), user, pass); got != reason || why != cause {
			t.Errorf("%v, %v, want %v, %v", got, why, reason, cause)
		}
	}
	says(until(now+1, "u1"), reject.Admitted, reject.NoCause)
	says(nil, reject.Room, reject.PassMissing)
	says(until(now, "u1"), reject.Room, reject.PassExpired)
	says(until(now+1, "u2"), reject.Room, reject.PassWrong)
	if !s.Joinable([]byte("1001")) || s.Joinable([]byte("2")) {
		t.Error("people may join for a SKU of another sale, or not for one of this sale")
	}
	s.set(0, 0)
	s.inPhase(t, Over)
	says(until(now+1, "u1"), reject.Admitted, reject.NoCause)
	says(nil, reject.SoldOut, reject.NoCause)
	if s.Joinable([]byte("1001")) {
		t.Error("people may join a room that is over")
	}
}
