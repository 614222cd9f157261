package sim

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"sluice/stockgate/ledger"
)

// shop is the modelled shop: it makes each order that it is sent, when it comes to it.
type shop struct {
	mu     sync.Mutex
	orders map[string]*shopOrder // by serial
	twice  []string              // serials that came twice
	mute   bool                  // it does not answer questions
}

// shopOrder is what the shop knows of a serial.
type shopOrder struct {
	user      string
	quantity  int64
	made      bool // the order exists, or existed
	cancelled bool
	until     time.Time // an attempt may make it before that
}

// receive takes an order that a gateway forwards, and makes it after a while; makes is false where it fails.
func (s *shop) receive(serial, user string, quantity int64, after time.Duration, makes bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.orders[serial] != nil {
		s.twice = append(s.twice, serial)
		return
	}
	o := &shopOrder{user: user, quantity: quantity}
	s.orders[serial] = o
	if !makes {
		return
	}
	if after == 0 {
		o.made = true
		return
	}
	time.AfterFunc(after, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		o.made = true
	})
}

// attempt takes an order that a deliverer sends, and makes it after a while, unless the deadline of the attempt has
// passed. An earlier attempt must have come to nothing by then.
func (s *shop) attempt(serial string, b *buying, deadline time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	o := s.orders[serial]
	if o == nil {
		o = &shopOrder{user: b.user, quantity: b.quantity}
		s.orders[serial] = o
	}
	if o.made || time.Now().Before(o.until) {
		s.twice = append(s.twice, serial)
		return
	}
	if !b.makes {
		return
	}
	o.until = deadline
	time.AfterFunc(b.after, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		o.made = o.made || time.Now().Before(deadline)
		o.until = time.Time{}
	})
}

// has reports whether the shop has got an order, and whether it has made it, if only to cancel it since.
func (s *shop) has(serial string) (seen, made bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	o := s.orders[serial]
	return o != nil, o != nil && o.made
}

// cancel gives an order back. It reports false where there is none, or no longer.
func (s *shop) cancel(serial string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	o := s.orders[serial]
	if o == nil || !o.made || o.cancelled {
		return false
	}
	o.cancelled = true
	return true
}

// stands reports whether the shop has an order.
func (s *shop) stands(serial string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	o := s.orders[serial]
	return o != nil && o.made && !o.cancelled
}

// Ask is a ledger.AskOrder. An order that was cancelled existed.
func (s *shop) Ask(_ context.Context, _, serial string) (ledger.OrderStatus, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.mute {
		return ledger.OrderUnknown, errors.New("the shop does not answer")
	}
	if o := s.orders[serial]; o != nil && o.made {
		return ledger.OrderExists, nil
	}
	return ledger.OrderNotFound, nil
}

// sold is the units of the orders that stand.
func (s *shop) sold() (units int64) {
	for _, o := range s.orders {
		if o.made && !o.cancelled {
			units += o.quantity
		}
	}
	return units
}

func (o *shopOrder) String() string {
	if o == nil {
		return "none"
	}
	return fmt.Sprintf("%d units, made %t, cancelled %t", o.quantity, o.made, o.cancelled)
}
