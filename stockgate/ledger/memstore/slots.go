package memstore

import (
	"context"
	"errors"
	"fmt"
	"time"

	"sluice/stockgate/ledger/protocol"
)

// slots are the places of all SKUs; times are of this machine.
type slots struct {
	tokens map[string]time.Time // until when they count
	paused time.Time
	next   time.Time // when the next order may begin by the rate
}

// slotBurst is how much of the rate may begin at once.
const slotBurst = 100 * time.Millisecond

// Slots implements protocol.Queue.
func (m *Store) Slots(ctx context.Context, c protocol.SlotCall) (granted int, err error) {
	if err := errors.Join(ctx.Err(), c.Check()); err != nil {
		return 0, fmt.Errorf("take slots: %w", err)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.slots.take(time.Now(), &c), nil
}

func (s *slots) take(now time.Time, c *protocol.SlotCall) int {
	for token, until := range s.tokens {
		if !now.Before(until) {
			delete(s.tokens, token)
		}
	}
	for _, token := range c.Free {
		delete(s.tokens, token)
	}
	if until := now.Add(time.Duration(c.Pause) * time.Millisecond); c.Pause > 0 && until.After(s.paused) {
		s.paused = until
	}
	granted := max(min(len(c.Want), c.Limit-len(s.tokens)), 0)
	if now.Before(s.paused) {
		granted = 0
	}
	if c.Rate > 0 {
		each := time.Duration(float64(time.Second) / c.Rate)
		s.next = s.next.Add(-time.Duration(c.Unused) * each)
		if first := now.Add(-max(slotBurst, each)); s.next.Before(first) {
			s.next = first
		}
		granted = max(min(granted, int(now.Sub(s.next)/each)), 0)
		s.next = s.next.Add(time.Duration(granted) * each)
	}
	if s.tokens == nil {
		s.tokens = make(map[string]time.Time)
	}
	for _, token := range c.Want[:granted] {
		s.tokens[token] = now.Add(time.Duration(c.For) * time.Millisecond)
	}
	return granted
}
