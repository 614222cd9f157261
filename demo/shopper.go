package demo

import (
	"context"
	"math/rand/v2"
	"time"
)

// shopper is one person with one button. It presses again while it is told to, or hears nothing; it goes home when the
// answer is final, or when its patience, the context, ends.
type shopper struct {
	front   string
	request []byte        // as it goes on the wire; always the same
	comes   time.Duration // after the start of the sale
	polite  bool          // comes back when Retry-After says; the others press again at once
	dice    *rand.Rand
	tally   *tally
	line    *line // nil until the first press, and after a break
}

func (s *shopper) shop(ctx context.Context) {
	defer func() {
		if s.line != nil {
			s.line.close()
		}
	}()
	pause := s.comes
	for {
		if !sleep(ctx, pause) {
			s.tally.leave(gaveUp)
			return
		}
		a := s.press(ctx)
		if home, final := a.settles(); final {
			s.tally.leave(home)
			return
		}
		pause = s.pause(a)
	}
}

// press asks once and counts what came of it, and how long that took from the first byte sent to the whole answer.
func (s *shopper) press(ctx context.Context) reply {
	s.tally.ask()
	if !s.connect(ctx) {
		a := lost(ctx)
		s.tally.count(a, 0)
		return a
	}
	begin := time.Now()
	a, reusable := s.line.exchange(ctx, s.request)
	s.tally.count(a, time.Since(begin))
	if !reusable {
		s.line.close()
		s.line = nil
	}
	return a
}

// connect reports whether there is a connection, a new one if need be.
func (s *shopper) connect(ctx context.Context) bool {
	if s.line == nil {
		s.line, _ = dial(ctx, s.front) // nil with an error
	}
	return s.line != nil
}

// Between two presses of somebody who does not care what the answer said.
const (
	quickest = 300 * time.Millisecond
	slowest  = time.Second
)

// pause is how long until the next press: polite shoppers wait as long as they were told to and are then as quick as the
// others.
func (s *shopper) pause(a reply) time.Duration {
	reaction := quickest + time.Duration(s.dice.Int64N(int64(slowest-quickest)))
	if s.polite {
		return a.wait + reaction
	}
	return reaction
}

// sleep reports whether d passed before ctx ended.
func sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}
