package demo

import (
	"context"
	"strconv"
	"strings"
	"time"
)

// fault is what goes wrong with an order after the gate has taken its unit.
type fault uint8

const (
	none     fault = iota
	declines       // the payment is declined: certainly no order
	breaks         // the order is written, and then the answer is 500
	dawdles        // the order is written, and the answer comes too late
)

// Of a hundred shoppers of a crowd two are declined, one hears 500 and one hears nothing in time: by their numbers, so
// that two sales compare. These numbers have some among them who press first, so that every sale has its mishaps. Who
// comes with a browser is spared.
const (
	declinedOf50  = 19
	brokenOf100   = 52
	dawdledOf100  = 92
	dawdle        = 3 * time.Second // a gate before a shop like this one waits for less
	shopperPrefix = "shopper-"
)

// mishapOf tells what goes wrong with the order of a user.
func mishapOf(user string) fault {
	digits, crowd := strings.CutPrefix(user, shopperPrefix)
	i, err := strconv.Atoi(digits)
	switch {
	case !crowd || err != nil:
		return none
	case i%50 == declinedOf50:
		return declines
	case i%100 == brokenOf100:
		return breaks
	case i%100 == dawdledOf100:
		return dawdles
	}
	return none
}

// dawdle keeps an answer back until it is too late, the client has gone, or the shop closes.
func (s *Shop) dawdle(ctx context.Context) {
	t := time.NewTimer(dawdle)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	case <-s.closing:
	}
}
