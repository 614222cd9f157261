package room

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"
)

// shopper is one of a simulated crowd, who orders as soon as a poll has told of being called.
type shopper struct {
	user     []byte
	tickets  []Place
	early    bool // of those who join before the start, among the first half
	fast     bool // polls each second, and not each 20 s
	many     bool // has ten tickets
	next     int64
	first    bool  // was called at once
	calledAt int64 // of one who has come; else 0
	bought   bool
}

// market is a simulated sale: a room and its crowd. Each instance of the gate would compute the same.
type market struct {
	rules  Rules
	final  Final
	state  State
	crowd  []*shopper
	random *rand.Rand
}

// openMarket lets n people join before the start of a sale of so many units. A tenth of them has ten tickets.
func openMarket(rules Rules, n int, units int64, random *rand.Rand) *market {
	m := &market{rules: rules, final: NewFinal(seedOf(random), seedOf(random)), random: random}
	m.state = State{Phase: Open, At: 1_000_000, Stocked: true, Known: true, Free: units}
	for i := range n {
		p := &shopper{user: fmt.Append(nil, "u", random.Uint64()), early: i < n/2, fast: random.IntN(2) == 0,
			many: rules.Draw && random.IntN(10) == 0}
		tickets := 1
		if p.many {
			tickets = 10
		}
		for range tickets {
			m.state.Issued++
			p.tickets = append(p.tickets, Place{Number: m.state.Issued, Joined: 1, Flags: Early})
		}
		p.next = m.state.At + random.Int64N(p.pause())
		m.crowd = append(m.crowd, p)
	}
	if rules.Draw {
		m.state.Draw, m.state.Lottery.Seed = true, "drawn"
		m.state.Early, m.state.EarlyPeople = m.state.Issued, int64(n)
	}
	return m
}

func (p *shopper) pause() int64 {
	if p.fast {
		return 1000
	}
	return 20_000
}

// sell runs the sale until no unit is left.
func (m *market) sell(t *testing.T) {
	t.Helper()
	for end := m.state.At + time.Hour.Milliseconds(); m.state.Free > 0; m.state.At += 1000 {
		if m.state.At > end {
			t.Fatalf("%d units are left", m.state.Free)
		}
		m.call()
		for _, p := range m.crowd {
			if p.calledAt == 0 && m.state.At >= p.next {
				p.next = m.state.At + p.pause()*(85+m.random.Int64N(31))/100
				m.poll(p)
			}
		}
	}
}

// call moves the room.
func (m *market) call() {
	s, first := &m.state, m.state.Called == 0
	s.Lately = 0
	for _, p := range m.crowd {
		if p.calledAt > s.At-m.rules.ClaimWithin.Milliseconds() {
			s.Lately++
		}
	}
	move := m.rules.Move(s, 1<<40)
	if move.Calls == 0 {
		return
	}
	s.Threshold, s.Serving, s.Called, s.Count = move.Threshold, move.Serving, s.Called+move.Calls, s.Count+1
	s.Steps = append(s.Steps, Step{At: s.At, Threshold: s.Threshold, Serving: s.Serving, Called: s.Called})
	for _, p := range m.crowd {
		p.first = p.first || first && m.position(p).State == IsCalled
	}
}

// position is that of p's best ticket.
func (m *market) position(p *shopper) (pos Position) {
	var final *Final
	if m.state.Draw {
		final = &m.final
	}
	for _, place := range p.tickets {
		if pos = m.rules.Position(&m.state, final, place, p.user); pos.State == IsCalled {
			break
		}
	}
	return pos
}

// poll has p order a unit where it is called.
func (m *market) poll(p *shopper) {
	s, pos := &m.state, m.position(p)
	if pos.State != IsCalled {
		return
	}
	p.calledAt = pos.CalledAt
	s.Claimed++
	if p.bought = s.Free > 0; p.bought {
		s.Used++
		s.Free--
	} else {
		s.Inside++
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

// In a draw the time of joining, polls and tickets change no chance of being called, and time and tickets none of a
// unit. Those who are called come in the order of their polls: where more come than there are units, the last ones find
// none.
func TestDraw_TimePollsAndTicketsChangeNoChance(t *testing.T) {
	if raced {
		t.Skip("it has one goroutine, and computes for long")
	}
	for overshoot, slowest := range map[float64]float64{1: 0.8, 1.3: 0.4} {
		var called, bought struct{ early, fast, many share }
		random := rand.New(rand.NewPCG(3, 4))
		for range 200 {
			m := openMarket(Rules{Draw: true, Overshoot: overshoot, ClaimWithin: 90 * time.Second}, 300, 30, random)
			m.sell(t)
			for _, p := range m.crowd {
				called.early.count(p.early, p.first)
				called.fast.count(p.fast, p.first)
				called.many.count(p.many, p.first)
				bought.early.count(p.early, p.bought)
				bought.fast.count(!p.fast, p.bought)
				bought.many.count(p.many, p.bought)
			}
		}
		for name, s := range map[string]*share{"called, early": &called.early, "called, fast": &called.fast,
			"called, ten tickets": &called.many, "a unit, early": &bought.early, "a unit, ten tickets": &bought.many} {
			t.Logf("overshoot %v: %s: chi-square %.2f", overshoot, name, s.unequal())
			if s.unequal() > 6.63 {
				t.Errorf("overshoot %v: %s: %+v, chi-square %.1f", overshoot, name, *s, s.unequal())
			}
		}
		t.Logf("overshoot %v: who polls each 20 s has %.2f times the chance of who polls each second", overshoot,
			bought.fast.ratio())
		if r := bought.fast.ratio(); r < slowest {
			t.Errorf("overshoot %v: who polls each 20 s has %.2f times the chance of who polls each second", overshoot, r)
		}
	}
}

// First come, first served: with as many calls as units all who are called have one, however slowly they poll.
func TestFIFO_WhoIsCalledHasAUnit(t *testing.T) {
	random := rand.New(rand.NewPCG(5, 6))
	for range 50 {
		m := openMarket(Rules{Overshoot: 1, ClaimWithin: 90 * time.Second}, 100, 30, random)
		m.sell(t)
		for i, p := range m.crowd {
			if p.bought != (i < 30) {
				t.Fatalf("number %d, fast %v, has bought: %v", i+1, p.fast, p.bought)
			}
		}
	}
}
