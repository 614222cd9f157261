package sale

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"
)

// What operators have said lies in one hash: the name of a sale -> "on AT", "paused AT", or "ended BEGAN AT". BEGAN is when
// the sale that is ended began (Unix ns), since another sale may have its name one day. AT is when it was said (Unix ms): the
// later word counts, so that a Redis that has lost the last one, in a fail-over, says nothing new. A missing word is none.

const wordsKey = "sluice:sales"

// word is what an operator has said.
type word struct {
	to State
	at int64 // Unix ms of the shared clock; 0 = nobody has said anything
}

// ErrNoSale is the cause when a sale is not configured.
var ErrNoSale = errors.New("no such sale")

// Set says for all instances where a sale stands from now on: On, Paused, or Ended for good. This one knows it at once,
// the others with their next beats.
func (b *Board) Set(ctx context.Context, name string, to State) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	s := b.plan.Load().named(name)
	if s == nil {
		return fmt.Errorf("%s %q: %w", to, name, ErrNoSale)
	}
	said := word{to, max(b.Wall().UnixMilli(), s.saidAt+1)}
	if b.link != nil {
		err := b.link.To(wordsKey).Do(ctx, func(ctx context.Context, c *redis.Client) error {
			return c.HSet(ctx, wordsKey, name, s.write(said)).Err()
		}, func(err error) error { return err })
		if err != nil {
			return fmt.Errorf("%s %q: %w", to, name, err)
		}
	}
	s.hear(said, b)
	return nil
}

func (p *plan) named(name string) *standing {
	for _, s := range p.all {
		if s.Name == name {
			return s
		}
	}
	return nil
}

func (s *standing) write(w word) string {
	if w.to == Ended {
		return fmt.Sprintf("ended %d %d", s.starts, w.at)
	}
	return fmt.Sprintf("%s %d", w.to, w.at)
}

// hear takes in what an operator said. mu is held.
func (s *standing) hear(w word, b *Board) {
	s.saidAt = w.at
	if was := State(s.said.Swap(uint32(w.to))); was != w.to {
		b.o.Log.Info("sale: an operator said", "sale", s.Name, "state", w.to.String(), "before", was.String())
	}
}

// beat brings what is known up to date.
func (b *Board) beat(ctx context.Context) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.update(ctx, b.plan.Load())
}

// update asks Redis for its clock and its words of p, and takes both in. Without any sale nobody is asked. mu is held.
func (b *Board) update(ctx context.Context, p *plan) {
	if len(p.all) == 0 {
		b.clock = clock{} // by the time that there is a sale it would be old
		b.own()
		return
	}
	if b.link == nil {
		b.own()
		b.turn(p)
		return
	}
	began := b.o.Now()
	unix, words, err := b.ask(ctx, p)
	if ctx.Err() != nil {
		return
	}
	b.note(err)
	switch {
	case err == nil:
		b.heard(unix, began, b.o.Now())
		for _, s := range p.all {
			if w, ok := s.read(words[s.Name]); ok && w.at >= s.saidAt {
				s.hear(w, b)
			}
		}
	case b.clock.doubt == 0:
		b.own()
	}
	b.turn(p)
}

// read understands a word. One that is not there, or not about this sale, says nothing.
func (s *standing) read(text string) (w word, ok bool) {
	said, at, _ := strings.Cut(text, " ")
	switch said {
	case "on":
	case "paused":
		w.to = Paused
	case "ended":
		var began string
		began, at, _ = strings.Cut(at, " ")
		if w.to = Ended; began != strconv.FormatInt(s.starts, 10) {
			return word{}, false
		}
	default:
		return word{}, false
	}
	w.at, _ = strconv.ParseInt(at, 10, 64) // one without a time is older than any
	return w, true
}

// ask makes the round trip of one beat: two when a Redis that has lost its words must be told again.
func (b *Board) ask(ctx context.Context, p *plan) (unix int64, words map[string]string, err error) {
	err = b.link.To(wordsKey).Do(ctx, func(ctx context.Context, c *redis.Client) error {
		pipe := c.Pipeline()
		at, said := pipe.Time(ctx), pipe.HGetAll(ctx, wordsKey)
		if _, err := pipe.Exec(ctx); err != nil {
			return fmt.Errorf("read %s: %w", wordsKey, err)
		}
		unix, words = at.Val().UnixNano(), said.Val()
		return b.remind(ctx, c, p, words)
	}, func(err error) error { return err })
	return unix, words, err
}

// remind says again what Redis has forgotten: a sale that is paused stays so.
func (b *Board) remind(ctx context.Context, c *redis.Client, p *plan, words map[string]string) error {
	for _, s := range p.all {
		if w, _ := s.read(words[s.Name]); w.at < s.saidAt {
			if err := c.HSet(ctx, wordsKey, s.Name, s.write(word{State(s.said.Load()), s.saidAt})).Err(); err != nil {
				return fmt.Errorf("write %s: %w", wordsKey, err)
			}
		}
	}
	return nil
}

// note counts a beat, and says when Redis is lost and found.
func (b *Board) note(err error) {
	b.beats.note(err)
	switch {
	case err != nil && !b.away:
		b.o.Log.Warn("cannot reach Redis; sales begin and end by the schedule, and by what operators said before", "err", err)
	case err == nil && b.away:
		b.o.Log.Info("Redis is reached again; what operators say of sales counts")
	}
	b.away = err != nil
}

// Standing is one sale, for operators.
type Standing struct {
	Sale
	State State
	Begun bool // on this instance
}

// All lists the sales as they stand, in the order of the configuration.
func (b *Board) All() []Standing {
	all, at := []Standing{}, b.Time(b.o.Now())
	for _, s := range b.plan.Load().all {
		all = append(all, Standing{s.Sale, s.at(at, b.wrong.Load()).State, s.begun.Load()})
	}
	return all
}
