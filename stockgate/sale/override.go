package sale

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"

	"sluice/stockgate/redisconn"
)

// What operators have said lies in one hash: the name of a sale -> "on AT", "paused AT", or "ended BEGAN AT". BEGAN is
// when the sale that is ended began (Unix ns), since another sale may have its name one day. AT is when it was said
// (Unix ms): the later word counts, so that a Redis that has lost the last one, in a fail-over, says nothing new. A
// missing word is none.

// override is what an operator has said.
type override struct {
	to State
	at int64 // Unix ms of the shared clock; 0 = no override
}

// ErrNoSale is the cause when a sale is not configured.
var ErrNoSale = errors.New("no such sale")

// Set says for all instances where a sale stands from now on: On, Paused, or Ended for good. This one knows it at once,
// the others with their next beats.
func (b *Schedule) Set(ctx context.Context, name string, to State) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	s := b.plan.Load().saleNamed(name)
	if s == nil {
		return fmt.Errorf("%s %q: %w", to, name, ErrNoSale)
	}
	said := override{to, max(b.Wall().UnixMilli(), s.saidAt+1)}
	if b.link != nil {
		err := b.link.To(b.wordsKey).Do(ctx, func(ctx context.Context, c *redis.Client) error {
			return c.HSet(ctx, b.wordsKey, name, s.write(said)).Err()
		}, redisconn.Unanswered)
		if err != nil {
			return fmt.Errorf("%s %q: %w", to, name, err)
		}
	}
	s.applyOverride(said, b)
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

func (s *saleState) write(w override) string {
	if w.to == Ended {
		return fmt.Sprintf("ended %d %d", s.starts, w.at)
	}
	return fmt.Sprintf("%s %d", w.to, w.at)
}

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
	began := b.o.Now()
	unix, words, err := b.readRedis(ctx, p)
	if ctx.Err() != nil {
		return
	}
	b.beats.Record(err)
	switch {
	case err == nil:
		b.updateClock(unix, began, b.o.Now())
		for _, s := range p.all {
			if w, ok := s.read(words[s.Name]); ok && w.at >= s.saidAt {
				s.applyOverride(w, b)
			}
		}
	case b.clock.Error == 0:
		b.useLocalClock()
	}
	b.logTransitions(p)
}

// read understands a word. ok is false for one that is not there, and for one about a sale that began at another time;
// that has a time, too.
func (s *saleState) read(text string) (w override, ok bool) {
	said, at, _ := strings.Cut(text, " ")
	ok = true
	switch said {
	case "on":
	case "paused":
		w.to = Paused
	case "ended":
		var began string
		began, at, _ = strings.Cut(at, " ")
		w.to, ok = Ended, began == strconv.FormatInt(s.starts, 10)
	default:
		return override{}, false
	}
	w.at, _ = strconv.ParseInt(at, 10, 64) // one without a time is older than any
	return w, ok
}

// readRedis makes the round trip of one beat: two when a Redis that has lost its words must be told again.
func (b *Schedule) readRedis(ctx context.Context, p *plan) (unix int64, words map[string]string, err error) {
	err = b.link.To(b.wordsKey).Do(ctx, func(ctx context.Context, c *redis.Client) error {
		pipe := c.Pipeline()
		at, said := pipe.Time(ctx), pipe.HGetAll(ctx, b.wordsKey)
		if _, err := pipe.Exec(ctx); err != nil {
			return fmt.Errorf("read %s: %w", b.wordsKey, err)
		}
		unix, words = at.Val().UnixNano(), said.Val()
		return b.restoreOverrides(ctx, c, p, words)
	}, redisconn.Unanswered)
	return unix, words, err
}

// restoreOverrides says again what Redis has forgotten: a sale that is paused stays so. A later word stays, also one
// that an instance said whose sale of this name starts at another time.
func (b *Schedule) restoreOverrides(ctx context.Context, c *redis.Client, p *plan, words map[string]string) error {
	for _, s := range p.all {
		if w, _ := s.read(words[s.Name]); w.at < s.saidAt {
			if err := c.HSet(ctx, b.wordsKey, s.Name, s.write(override{State(s.said.Load()), s.saidAt})).Err(); err != nil {
				return fmt.Errorf("write %s: %w", b.wordsKey, err)
			}
		}
	}
	return nil
}

// SaleStatus is one sale, for operators.
type SaleStatus struct {
	Sale
	State State
	Begun bool // on this instance
}

// All lists the sales as they stand, in the order of the configuration.
func (b *Schedule) All() []SaleStatus {
	all, at := []SaleStatus{}, b.Time(b.o.Now())
	for _, s := range b.plan.Load().all {
		all = append(all, SaleStatus{s.Sale, s.at(at, b.wrong.Load()).State, s.begun.Load()})
	}
	return all
}
