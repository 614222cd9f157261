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

// What operators have said lies in one hash. The name of a sale -> "on AT START" or "paused AT START". AT is when it was
// said (Unix ms): the later word counts, so that a Redis that has lost the last one, in a fail-over, says nothing new.
// START is when the sale starts of which it was said (Unix ns): the word also counts when that is moved, and no more once
// the sale has ended. "START NAME" -> "ended AT": the sale of this name that starts then has ended for good. Another sale
// may have its name one day. A missing word is none.

// override is what an operator has said.
type override struct {
	to State
	at int64 // Unix ms of the shared clock; 0 = no override
}

// Why an operator's word is not taken.
var (
	ErrNoSale = errors.New("no such sale")
	ErrEnded  = errors.New("it has ended, and does not open again; write a new [[sale]] with another start, and open its " +
		"ledgers by sluice stock resume SKU")
)

// Set says for all instances where a sale stands from now on: On, Paused, or Ended for good. This one knows it at once,
// the others with their next beats.
func (b *Schedule) Set(ctx context.Context, name string, to State) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	s := b.plan.Load().saleNamed(name)
	if s == nil {
		return fmt.Errorf("%s %q: %w", to, name, ErrNoSale)
	}
	if to != Ended && s.ended() {
		return fmt.Errorf("%s %q: %w", to, name, ErrEnded)
	}
	said := override{to, max(b.Wall().UnixMilli(), s.saidAt+1)}
	if b.link != nil {
		err := b.link.To(b.wordsKey).Do(ctx, func(ctx context.Context, c *redis.Client) error {
			return c.HSet(ctx, b.wordsKey, s.word(said)).Err()
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

func (s *saleState) ended() bool { return State(s.said.Load()) == Ended }

// word is the field and the value of a word.
func (s *saleState) word(w override) []string {
	if w.to == Ended {
		return []string{s.endField(), fmt.Sprintf("ended %d", w.at)}
	}
	return []string{s.Name, fmt.Sprintf("%s %d %d", w.to, w.at, s.starts)}
}

// endField has the word that this sale has ended, and no other of its name.
func (s *saleState) endField() string { return strconv.FormatInt(s.starts, 10) + " " + s.Name }

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
			if w, ok := s.read(words); ok && (w.to == Ended || w.at >= s.saidAt && !s.ended()) {
				s.applyOverride(w, b)
			}
		}
	case b.clock.Error == 0:
		b.useLocalClock()
	}
	b.logTransitions(p)
}

// read understands the words on a sale. An end counts more than any other word. ok is false where there is none.
func (s *saleState) read(words map[string]string) (w override, ok bool) {
	text, ended := words[s.endField()]
	if !ended {
		text = words[s.Name]
	}
	said, rest, _ := strings.Cut(text, " ")
	at, start, _ := strings.Cut(rest, " ")
	w.at, _ = strconv.ParseInt(at, 10, 64) // one without a time is older than any
	_, past := words[start+" "+s.Name]
	switch {
	case ended:
		w.to = Ended
	case past:
		return override{}, false
	case said == "paused":
		w.to = Paused
	case said != "on":
		return override{}, false
	}
	return w, true
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

// restoreOverrides says again what Redis has forgotten: a sale that is paused stays so, and one that has ended, too.
func (b *Schedule) restoreOverrides(ctx context.Context, c *redis.Client, p *plan, words map[string]string) error {
	for _, s := range p.all {
		w, _ := s.read(words)
		if s.ended() && w.to != Ended || !s.ended() && w.to != Ended && w.at < s.saidAt {
			if err := c.HSet(ctx, b.wordsKey, s.word(override{State(s.said.Load()), s.saidAt})).Err(); err != nil {
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
