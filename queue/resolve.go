package queue

import (
	"context"
	"errors"
	"time"

	"sluice/proxy"
	"sluice/stockgate/ledger"
)

const (
	askTimeout = 2 * time.Second
	unaskedLog = 10 * time.Second // between two lines of the log about the upstream that cannot be asked
	askFor     = 30 * time.Second // longer than an answer of the upstream and of the store may take
	maxAsks    = 8                // at a time
	firstAgain = time.Second
	lastAgain  = 5 * time.Minute
)

// ask asks the upstream for an order.
func (s *sender) ask(sku, serial string) ledger.OrderStatus {
	ask := s.live().Ask
	if ask == nil {
		return ledger.OrderUnknown
	}
	ctx, cancel := context.WithTimeout(s.ctx, askTimeout)
	defer cancel()
	status, err := ask(ctx, sku, serial)
	if err != nil {
		status = ledger.OrderUnknown
	} else if status == ledger.OrderUnknown {
		err = errors.New("its answer is neither 200 nor 404")
	}
	if err != nil && s.ctx.Err() == nil {
		due := false
		s.unasked.Do(func() { due = true }) // which holds its lock meanwhile
		if due {
			s.live().Log.Warn("status_url does not tell what became of an order of the queue; its unit stays held, and it "+
				"is asked again", "sku", sku, "serial", serial, "err", err)
		}
	}
	return status
}

// resolve decides about an order whose last attempt has an unknown outcome. The deadline of that attempt and the grace
// have passed before the upstream is asked: what it does not know then it does not make of that attempt any more, if it
// keeps to the deadline.
func (s *sender) resolve(sku string, o *ledger.Leased) result {
	now := time.Now()
	status := s.ask(sku, o.Serial)
	over := now.UnixMilli() >= o.Until
	nowhere := status == ledger.OrderNotFound && (s.live().Fenced || s.live().Cancels)
	switch {
	case status == ledger.OrderExists:
		return result{move: ledger.MoveConfirm}
	case nowhere && (over || s.live().Cancels):
		return result{move: ledger.MoveRelease, answer: (&proxy.KeptAnswer{State: proxy.OrderExpired}).Text()}
	case nowhere:
		return s.again(o, ledger.MoveNowhere)
	case s.live().ByKey && !over:
		return s.again(o, ledger.MoveRepeat)
	case status == ledger.OrderNotFound:
		return stuck("the upstream does not know it, and may still make it: on_not_found does not tell when it cannot")
	case s.live().ByKey && s.live().Ask == nil:
		return stuck("its time is over, and the upstream cannot be asked about it: there is no status_url")
	case s.live().Ask == nil:
		return stuck("the upstream cannot be asked about it: there is no status_url")
	}
	wait := min(max(time.Duration(now.UnixMilli()-o.Deadline)*time.Millisecond, firstAgain), lastAgain)
	return result{move: ledger.MoveLater, time: now.Add(wait).UnixMilli()}
}

func stuck(why string) result {
	return result{move: ledger.MoveLater, time: ledger.Never, why: why}
}
