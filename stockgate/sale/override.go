package sale

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"sluice/stockgate/redisconn"
)

// What operators have said lies in one hash: "START NAME" -> "STATE AT END". START and END are the hours of the sale of
// that name of which it was said (Unix ns), AT is when it was said (Unix ms). Of several words on a sale an end counts,
// else the latest: so a Redis that has lost the last one, in a fail-over, says nothing new.

// override is what an operator has said.
type override struct {
	to State
	at int64 // Unix ms of the shared clock; 0 = nothing was said
}

// beats reports whether o counts where both were said.
func (o override) beats(other override) bool {
	if (o.to == Ended) != (other.to == Ended) {
		return o.to == Ended
	}
	return o.at > other.at
}

// word is an override as Redis has it.
type word struct {
	name         string
	starts, ends int64
	override
}

func (w word) field() string { return fmt.Sprintf("%d %s", w.starts, w.name) }

func (w word) value() string { return fmt.Sprintf("%s %d %d", w.to, w.at, w.ends) }

// wordOf reads a field of the hash; ok is false for what no instance has written.
func wordOf(field, value string) (w word, ok bool) {
	start, name, _ := strings.Cut(field, " ")
	said := strings.Split(value, " ")
	if len(said) != 3 {
		return w, false
	}
	w.name = name
	var errs [3]error
	w.starts, errs[0] = strconv.ParseInt(start, 10, 64)
	w.at, errs[1] = strconv.ParseInt(said[1], 10, 64)
	w.ends, errs[2] = strconv.ParseInt(said[2], 10, 64)
	to := slices.Index([]string{On.String(), Waiting.String(), Paused.String(), Ended.String()}, said[0])
	w.to = State(max(to, 0))
	return w, to >= 0 && errors.Join(errs[:]...) == nil
}

// of reports whether a word is of a sale: of one of its name whose hours overlap those it was said of. So it counts
// where the hours are corrected, also on instances with the former file. What is said to be ended while it is on is over
// then: a sale of its name that starts later is another one.
func (w word) of(s *saleState) bool { return w.about(s.Name, s.starts, s.ends) }

func (w word) about(name string, starts, ends int64) bool {
	until, at := w.ends, w.at*int64(time.Millisecond)
	if w.to == Ended && w.starts < at && at < until {
		until = at
	}
	return w.name == name && (w.starts == starts || w.starts < ends && starts < until)
}

// over reports whether what w is about was ended later.
func (w word) over(all []word) bool {
	return w.to != Ended && slices.ContainsFunc(all, func(end word) bool {
		return end.to == Ended && end.at > w.at && end.about(w.name, w.starts, w.ends)
	})
}

// Why an operator's word is not taken.
var (
	ErrNoSale = errors.New("no such sale")
	ErrEnded  = errors.New("it has ended, and does not open again; write a [[sale]] with " +
		"another name")
)

// forgetAfter is for how long a word is kept that is of no sale any more.
const forgetAfter = 90 * 24 * time.Hour

// Set says for all instances where a sale stands from now on: On, Paused, or Ended for good. This one knows it at once,
// the others with their next beats.
func (b *Schedule) Set(ctx context.Context, name string, to State) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	s := b.plan.Load().saleNamed(name)
	if s == nil {
		return fmt.Errorf("set sale %q %s: %w", name, to, ErrNoSale)
	}
	if to != Ended && s.at(b.Time(b.o.Now()), false).State == Ended {
		return fmt.Errorf("set sale %q %s: %w", name, to, ErrEnded)
	}
	said := override{to, max(b.Wall().UnixMilli(), s.saidAt.Load()+1)}
	if b.link != nil {
		err := b.link.To(b.wordsKey).Do(ctx, func(ctx context.Context, c redisconn.Commands) error {
			return b.write(ctx, c, b.plan.Load(), word{s.Name, s.starts, s.ends, said})
		}, redisconn.Unanswered)
		if err != nil {
			return fmt.Errorf("set sale %q %s: %w", name, to, err)
		}
	}
	s.applyOverride(said, b)
	return nil
}

// write writes a word, and removes those that are old and of no sale of p any more.
func (b *Schedule) write(ctx context.Context, c redisconn.Commands, p *plan, w word) error {
	if err := c.HSet(ctx, b.wordsKey, w.field(), w.value()).Err(); err != nil {
		return fmt.Errorf("write %s: %w", b.wordsKey, err)
	}
	all, err := c.HGetAll(ctx, b.wordsKey).Result()
	if err != nil {
		return nil //nolint:nilerr // what was to be written is
	}
	old := b.Wall().Add(-forgetAfter).UnixMilli()
	for field, value := range all {
		w, ok := wordOf(field, value)
		if ok && w.at < old && !slices.ContainsFunc(p.all, w.of) {
			_ = c.HDel(ctx, b.wordsKey, field).Err() // else the next word removes it
		}
	}
	return nil
}

func (p *plan) saleNamed(name string) *saleState {
	for _, s := range p.all {
		if s.Name == name {
			return s
		}
	}
	return nil
}

// known is what counts of what was said.
func (s *saleState) known() word {
	return word{s.Name, s.starts, s.ends, override{State(s.said.Load()), s.saidAt.Load()}}
}

// applyOverride takes in what an operator said. mu is held.
func (s *saleState) applyOverride(w override, b *Schedule) {
	s.saidAt.Store(w.at)
	if was := State(s.said.Swap(uint32(w.to))); was != w.to {
		b.o.Log.Info("sale: an operator said", "sale", s.Name, "state", w.to.String(), "before", was.String())
	}
}

// beat brings what is known up to date.
func (b *Schedule) beat(ctx context.Context) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.update(ctx, b.plan.Load())
}

// update asks Redis for its clock and its words of p, and takes both in. Redis is not asked without any sale, and
// any other use of the clock. mu is held.
func (b *Schedule) update(ctx context.Context, p *plan) {
	if len(p.all) == 0 && !p.clock {
		b.clock = redisconn.Clock{} // by the time that it is wanted it would be old
		b.useLocalClock()
		b.skew.Store(0)
		b.wrong.Store(false)
		return
	}
	if b.link == nil {
		b.useLocalClock()
		b.logTransitions(p)
		return
	}
	err := b.link.To(b.wordsKey).Do(ctx, func(ctx context.Context, c redisconn.Commands) error {
		return b.exchange(ctx, c, p)
	}, redisconn.Unanswered)
	if ctx.Err() != nil {
		return
	}
	b.beats.Record(err)
	if err != nil && b.clock.Error == 0 {
		b.useLocalClock()
	}
	b.logTransitions(p)
}

// exchange reads Redis' clock and its words in one round trip, and writes those that Redis has lost or has of other
// hours alone: what counts for a sale then counts where it is moved again.
func (b *Schedule) exchange(ctx context.Context, c redisconn.Commands, p *plan) error {
	began := b.o.Now()
	pipe := c.Pipeline()
	at, all := pipe.Time(ctx), pipe.HGetAll(ctx, b.wordsKey)
	if _, err := pipe.Exec(ctx); err != nil {
		return fmt.Errorf("read %s: %w", b.wordsKey, err)
	}
	b.updateClock(at.Val().UnixNano(), began, b.o.Now())
	var words []word
	for field, value := range all.Val() {
		if w, ok := wordOf(field, value); ok {
			words = append(words, w)
		}
	}
	said := map[*saleState]override{}
	for _, w := range words {
		for _, s := range p.all {
			if w.of(s) && w.beats(said[s]) && !w.over(words) {
				said[s] = w.override
			}
		}
	}
	var news []word
	for _, s := range p.all {
		lost := s.known().beats(said[s])
		if !lost {
			s.applyOverride(said[s], b)
		}
		known := s.known()
		if known.to != Ended && known.at > 0 { // an end is no word on other hours than those that it was said of
			own, _ := wordOf(known.field(), all.Val()[known.field()])
			lost = known.beats(own.override) || known.override == own.override && known.ends > own.ends
		}
		if lost {
			news = append(news, known)
		}
	}
	for _, w := range news { // once all are heard: a Redis that takes no writes is read
		if err := b.write(ctx, c, p, w); err != nil {
			return err
		}
	}
	return nil
}

// SaleStatus is one sale, for operators.
type SaleStatus struct {
	Sale
	State State
	Begun bool // on this instance
	Doubt bool // of Paused: not by an operator, but since the clocks do not agree
	Shut  bool // of Waiting: an operator has paused it, so that it does not open by itself
}

// All lists the sales as they stand, in the order of the configuration.
func (b *Schedule) All() []SaleStatus {
	all, at := []SaleStatus{}, b.Time(b.o.Now())
	for _, s := range b.plan.Load().all {
		p := s.at(at, b.wrong.Load())
		all = append(all, SaleStatus{s.Sale, p.State, p.Begun, p.Doubt, p.State == Waiting && State(s.said.Load()) == Paused})
	}
	return all
}
