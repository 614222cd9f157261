package room

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"testing"
	"time"
)

// How a simulated person polls.
const (
	asTold      = iota // as each answer says
	eachSecond         // each second, and sooner where the answer says so
	eachTwenty         // each 20 s, whatever is said
	onlySecond         // each second, whatever is said
	pollHabits         // how many there are
	fastest     = 1000 // ms
	slowest     = 20_000
	everyTick   = 100 // ms
	orderWithin = 5000
)

// shopper is one of a simulated crowd, who claims a pass as soon as an answer says so, and orders some seconds later.
type shopper struct {
	user     []byte
	tickets  []Place
	early    bool // of those who join before the start, among the first half
	many     bool // has ten tickets
	absent   bool // does not come
	habit    int
	next     int64 // when it polls; Unix ms
	first    bool  // was called at once
	calledAt int64 // of one who has claimed; else 0
	orders   int64 // when it orders; Unix ms; 0 = it does not
	bought   bool
	knows    bool // that it is called
}

// market is a simulated sale: a room and its crowd. Each instance of the gate would compute the same.
type market struct {
	rules   Rules
	final   Final
	state   State
	crowd   []*shopper
	random  *rand.Rand
	drawnIn int64 // ms from the start on
	polls   int   // by those who poll as told

	told, toldLate int // of those who poll as told: who heard of their call, and who did so after the notice
}

// openMarket lets n people join a minute before the start of a sale of so many units. A tenth of them has ten tickets.
func openMarket(rules Rules, n int, units int64, absent float64, random *rand.Rand) *market {
	rules.ClaimWithin, rules.PollFloor, rules.PollCeiling = 90*time.Second, time.Second, slowest*time.Millisecond
	m := &market{rules: rules, final: newFinal(seedOf(random), seedOf(random)), random: random}
	m.state = State{Phase: PreQueue, At: 1_000_000, Starts: 1_060_000, Stocked: true, Known: true, Free: units,
		Draw: rules.Draw}
	for i := range n {
		p := &shopper{user: fmt.Append(nil, "u", random.Uint64()), early: i < n/2, absent: random.Float64() < absent,
			many: rules.Draw && random.IntN(10) == 0, habit: asTold}
		if roll := random.IntN(10); roll < 4 {
			p.habit = eachSecond
		} else if roll < 6 {
			p.habit = eachTwenty + roll - 4
		}
		tickets := 1
		if p.many {
			tickets = 10
		}
		for range tickets {
			m.state.Issued++
			p.tickets = append(p.tickets, Place{Number: m.state.Issued, Joined: 1000, Flags: Early})
		}
		p.next = m.state.At + random.Int64N(slowest)
		m.crowd = append(m.crowd, p)
	}
	if rules.Draw {
		m.drawnIn = 1000 + random.Int64N(10_000)
	}
	return m
}

// sell runs the sale until no unit is left, and tells how many ms after its start that is.
func (m *market) sell(t *testing.T) int64 {
	t.Helper()
	s := &m.state
	for end := s.Starts + time.Hour.Milliseconds(); s.Free > 0; s.At += everyTick {
		if s.At > end {
			t.Fatalf("%d units are left", s.Free)
		}
		m.begin()
		m.call()
		m.tick()
	}
	return s.At - s.Starts
}

// tick has all do what they do until the next one.
func (m *market) tick() {
	began := m.state.At
	var due []*shopper
	for _, p := range m.crowd {
		if p.due() < began+everyTick {
			due = append(due, p)
		}
	}
	slices.SortFunc(due, func(a, b *shopper) int { return int(a.due() - b.due()) })
	for _, p := range due {
		if m.state.At = p.due(); p.orders != 0 {
			m.order(p)
		} else {
			m.poll(p)
		}
	}
	m.state.At = began
}

// due is when p does something next.
func (p *shopper) due() int64 {
	switch {
	case p.orders != 0:
		return p.orders
	case p.next != 0:
		return p.next
	}
	return math.MaxInt64
}

// begin opens the room when it is time to.
func (m *market) begin() {
	s := &m.state
	if s.At >= s.Starts && s.Draw && s.Early == 0 {
		s.Phase, s.Early, s.EarlyPeople = Drawing, s.Issued, int64(len(m.crowd))
	}
	if s.At >= s.Starts+m.drawnIn {
		s.Phase = Open
		if s.Draw {
			s.Lottery.Seed = "drawn"
		}
	}
}

// call moves the room.
func (m *market) call() {
	s, first := &m.state, m.state.Called == 0
	s.Lately = 0
	for _, p := range m.crowd {
		if p.calledAt > s.At-(m.rules.Notice(s)+m.rules.ClaimWithin).Milliseconds() {
			s.Lately++
		}
	}
	move := m.rules.Move(s, 1<<40)
	if move.Calls == 0 {
		return
	}
	s.Threshold, s.Serving, s.Called = move.Threshold, move.Serving, s.Called+move.Calls
	step := Step{At: s.At, Threshold: s.Threshold, Serving: s.Serving, Called: s.Called}
	if n := len(s.Steps); n > 0 && s.Steps[n-1].At/1000 == s.At/1000 { // as the store keeps them
		step.At = s.Steps[n-1].At
		s.Steps[n-1] = step
	} else {
		s.Steps, s.Count = append(s.Steps, step), s.Count+1
	}
	for _, p := range m.crowd {
		if pos := m.position(p); first && pos.CalledAt != 0 {
			p.first = true
		}
	}
}

// position is that of p's best ticket.
func (m *market) position(p *shopper) (pos Position) {
	var final *Final
	if m.state.Lottery.Drawn() {
		final = &m.final
	}
	for _, place := range p.tickets {
		if pos = m.rules.Position(&m.state, final, place, p.user); pos.CalledAt != 0 {
			break
		}
	}
	return pos
}

// poll has p look, and claim a pass where it may.
func (m *market) poll(p *shopper) {
	s, pos := &m.state, m.position(p)
	if pos.CalledAt != 0 && p.habit == asTold && !p.knows {
		p.knows = true
		m.told++
		if s.At > pos.From {
			m.toldLate++
		}
	}
	if pos.State == IsCalled {
		p.next = 0
		if !p.absent {
			p.calledAt = pos.CalledAt
			s.Claimed++
			s.Inside++
			p.orders = s.At + 500 + m.random.Int64N(orderWithin)
		}
		return
	}
	pause := max(m.rules.NextPoll(s, &pos).Milliseconds(), 1)
	switch p.habit {
	case asTold:
		m.polls++
	case eachSecond:
		pause = min(pause, fastest)
	case onlySecond:
		pause = fastest
	case eachTwenty:
		pause = slowest * (85 + m.random.Int64N(31)) / 100
	}
	p.next = s.At + pause
}

// order has p order a unit.
func (m *market) order(p *shopper) {
	p.orders = 0
	if p.bought = m.state.Free > 0; p.bought {
		m.state.Used++
		m.state.Inside--
		m.state.Free--
	}
}

// share counts how often something became true of two groups of people.
type share struct{ people, wins [2]float64 }

func (s *share) count(in, won bool) {
	group := 0
	if in {
		group = 1
	}
	s.people[group]++
	if won {
		s.wins[group]++
	}
}

// unequal is chi-square of the hypothesis that both groups have one chance: above 6.63 its probability is below 0.01.
func (s *share) unequal() (chi float64) {
	for group := range s.people {
		for _, n := range [][2]float64{{s.wins[group], s.wins[0] + s.wins[1]},
			{s.people[group] - s.wins[group], s.people[0] + s.people[1] - s.wins[0] - s.wins[1]}} {
			want := n[1] * s.people[group] / (s.people[0] + s.people[1])
			chi += (n[0] - want) * (n[0] - want) / want
		}
	}
	return chi
}

// ratio is the chance of those in the group, of that of the others.
func (s *share) ratio() float64 { return s.wins[1] / s.people[1] / (s.wins[0] / s.people[0]) }

// chances are what is counted of many sales.
type chances struct {
	called, unit struct{ early, many, told share }
	habits       [pollHabits]share // against those who poll each second, and sooner where they are told to
	took         []int64           // ms
	polls        int               // of those who poll as told, a sale
	told, late   int
}

// play counts what becomes of the people of 40 sales, and of 200 in a nightly run, of 30 units to 300 people, of whom some do not come.
func play(t *testing.T, rules Rules, absent float64) *chances {
	t.Helper()
	if raced {
		t.Skip("it has one goroutine, and computes for long")
	}
	sales := 40
	if os.Getenv("SLUICE_NIGHTLY") != "" {
		sales = 200
	}
	c, random := &chances{}, rand.New(rand.NewPCG(3, 4+uint64(10*absent)))
	for range sales {
		m := openMarket(rules, 300, 30, absent, random)
		c.took = append(c.took, m.sell(t))
		c.polls, c.told, c.late = c.polls+m.polls, c.told+m.told, c.late+m.toldLate
		for _, p := range m.crowd {
			if p.absent {
				continue
			}
			for habit := range c.habits {
				if p.habit == habit || p.habit == eachSecond {
					c.habits[habit].count(p.habit != eachSecond, p.bought)
				}
			}
			c.called.early.count(p.early, p.first)
			c.called.many.count(p.many, p.first)
			if p.habit == asTold || p.habit == eachSecond {
				c.called.told.count(p.habit == asTold, p.first)
				c.unit.early.count(p.early, p.bought)
				c.unit.many.count(p.many, p.bought)
				c.unit.told.count(p.habit == asTold, p.bought)
			}
		}
	}
	slices.Sort(c.took)
	t.Logf("%+v, %v absent: the chance of who polls as told is %.2f of that of who polls each second; each 20 s whatever "+
		"is told %.2f; each second whatever is told %.2f. Half of the sales took %.1f s, nine of ten %.1f s; %d polls a "+
		"sale; %d of %d heard late", rules, absent, c.habits[asTold].ratio(), c.habits[eachTwenty].ratio(),
		c.habits[onlySecond].ratio(), float64(c.took[sales/2])/1000, float64(c.took[sales*9/10])/1000, c.polls/sales,
		c.late, c.told)
	return c
}

// In a draw the time of joining, polls and tickets change neither the chance of being called nor that of a unit.
func TestDraw_TimePollsAndTicketsChangeNoChance(t *testing.T) {
	for _, overshoot := range []float64{1, 1.3} {
		for _, absent := range []float64{0, 0.2} {
			c := play(t, Rules{Draw: true, Overshoot: overshoot}, absent)
			for name, s := range map[string]*share{"called, early": &c.called.early, "called, as told": &c.called.told,
				"called, ten tickets": &c.called.many, "a unit, early": &c.unit.early, "a unit, as told": &c.unit.told,
				"a unit, ten tickets": &c.unit.many} {
				if s.unequal() > 6.63 {
					t.Errorf("overshoot %v, %v absent: %s: %+v, chi-square %.1f", overshoot, absent, name, *s, s.unequal())
				}
				t.Logf("%s: chi-square %.2f", name, s.unequal())
			}
		}
	}
}

// First come, first served: the polls change no chance of a unit. With as many calls as units all who are called have
// one.
func TestFIFO_PollsChangeNoChance(t *testing.T) {
	for _, overshoot := range []float64{1, 1.3} {
		if s := play(t, Rules{Overshoot: overshoot}, 0.2).unit.told; s.unequal() > 6.63 {
			t.Errorf("overshoot %v: %+v, chi-square %.1f", overshoot, s, s.unequal())
		}
	}
	random := rand.New(rand.NewPCG(5, 6))
	for range 50 {
		m := openMarket(Rules{Overshoot: 1}, 100, 30, 0, random)
		m.sell(t)
		for i, p := range m.crowd {
			if p.bought != (i < 30) {
				t.Fatalf("number %d, habit %d, has bought: %v", i+1, p.habit, p.bought)
			}
		}
	}
}
