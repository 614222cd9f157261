package sale

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"sluice/stockgate/redisconn"
)

// What operators have said lies in one hash: "START NAME" -> "STATE AT". START is when the sale of that name starts of
// which it was said (Unix ns), AT when it was said (Unix ms). Of several words on a sale an end counts, else the latest:
// so a Redis that has lost the last one, in a fail-over, says nothing new.

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
	start int64
	name  string
	override
}

func (w word) field() string { return fmt.Sprintf("%d %s", w.start, w.name) }

// wordOf reads a field of the hash; ok is false for what no instance has written.
func wordOf(field, value string) (w word, ok bool) {
	start, name, _ := strings.Cut(field, " ")
	state, at, _ := strings.Cut(value, " ")
	w.start, _ = strconv.ParseInt(start, 10, 64)
	w.at, _ = strconv.ParseInt(at, 10, 64)
	for _, w.to = range []State{On, Paused, Ended} {
		if w.name = name; w.to.String() == state {
			return w, w.start != 0 && w.at != 0
		}
	}
	return w, false
}

// Why an operator's word is not taken.
var (
	ErrNoSale = errors.New("no such sale")
	ErrEnded  = errors.New("it has ended, and does not open again; write a [[sale]] with another name, or with a start " +
		"that is still to come")
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
		return fmt.Errorf("%s %q: %w", to, name, ErrNoSale)
	}
	if to != Ended && s.at(b.Time(b.o.Now()), false).State == Ended {
		return fmt.Errorf("%s %q: %w", to, name, ErrEnded)
	}
	said := override{to, max(b.Wall().UnixMilli(), s.saidAt+1)}
	if b.link != nil {
		err := b.link.To(b.wordsKey).Do(ctx, func(ctx context.Context, c *redis.Client) error {
			return b.write(ctx, c, s, said)
		}, redisconn.Unanswered)
		if err != nil {
			return fmt.Errorf("%s %q: %w", to, name, err)
		}
	}
	s.applyOverride(said, b)
	return nil
}

// write writes a word on s, and removes those that are old and of no sale any more.
func (b *Schedule) write(ctx context.Context, c *redis.Client, s *saleState, said override) error {
	w := word{s.starts, s.Name, said}
	if err := c.HSet(ctx, b.wordsKey, w.field(), fmt.Sprintf("%s %d", w.to, w.at)).Err(); err != nil {
		return fmt.Errorf("write %s: %w", b.wordsKey, err)
	}
	all, err := c.HGetAll(ctx, b.wordsKey).Result()
	if err != nil {
		return nil //nolint:nilerr // what was to be written is
	}
	old := b.Wall().Add(-forgetAfter).UnixMilli()
	for field, value := range all {
		w, ok := wordOf(field, value)
		if ok && w.at < old && !slices.ContainsFunc(b.plan.Load().all, func(s *saleState) bool { return s.heeds(w) }) {
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

// heeds reports whether a word is of this sale: of its start, or said within its hours, whatever start the file of the
// one who said it had.
func (s *saleState) heeds(w word) bool {
	at := w.at * int64(time.Millisecond)
	return w.name == s.Name && (w.start == s.starts || s.starts <= at && at < s.ends)
}

// known is what counts of what was said.
func (s *saleState) known() override { return override{State(s.said.Load()), s.saidAt} }

// applyOverride takes in what an operator said. mu is held.
func (s *saleState) applyOverride(w override, b *Schedule) {
	s.saidAt = w.at
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

// update asks Redis for its clock and its words of p, and takes both in. Without any sale Redis is not asked. mu is
// held.
func (b *Schedule) update(ctx context.Context, p *plan) {
	if len(p.all) == 0 {
		b.clock = redisconn.Clock{} // by the time that there is a sale it would be old
		b.useLocalClock()
		return
	}
	if b.link == nil {
		b.useLocalClock()
		b.logTransitions(p)
		return
	}
	err := b.link.To(b.wordsKey).Do(ctx, func(ctx context.Context, c *redis.Client) error {
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

// exchange reads Redis' clock and its words in one round trip, and writes those that Redis has lost.
func (b *Schedule) exchange(ctx context.Context, c *redis.Client, p *plan) error {
	began := b.o.Now()
	pipe := c.Pipeline()
	at, all := pipe.Time(ctx), pipe.HGetAll(ctx, b.wordsKey)
	if _, err := pipe.Exec(ctx); err != nil {
		return fmt.Errorf("read %s: %w", b.wordsKey, err)
	}
	b.updateClock(at.Val().UnixNano(), began, b.o.Now())
	said := map[*saleState]override{}
	for field, value := range all.Val() {
		w, ok := wordOf(field, value)
		for _, s := range p.all {
			if ok && s.heeds(w) && w.beats(said[s]) {
				said[s] = w.override
			}
		}
	}
	for _, s := range p.all {
		if known := s.known(); !known.beats(said[s]) {
			s.applyOverride(said[s], b)
		} else if err := b.write(ctx, c, s, known); err != nil {
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
	Shut  bool // of Waiting: an operator has paused it, so that it does not open by itself
}

// All lists the sales as they stand, in the order of the configuration.
func (b *Schedule) All() []SaleStatus {
	all, at := []SaleStatus{}, b.Time(b.o.Now())
	for _, s := range b.plan.Load().all {
		p := s.at(at, b.wrong.Load())
		all = append(all, SaleStatus{s.Sale, p.State, p.Begun, p.State == Waiting && State(s.said.Load()) == Paused})
	}
	return all
}
