package gateway

import (
	"context"
	"crypto/subtle"
	"errors"
	"fmt"
	"strings"
	"time"

	"sluice/admin"
	"sluice/queue"
	"sluice/stockgate/ledger"
)

// State implements admin.Queue.
func (q *orderQueue) State(limit int) admin.QueueState {
	now := time.Now()
	s := q.deliverer.Status(now)
	age := func(oldest int64) int64 {
		if oldest == 0 {
			return 0
		}
		return max(now.UnixMilli()-(oldest-time.Duration(q.within.Load()).Milliseconds()), 0)
	}
	pace := q.options.Load()
	state := admin.QueueState{Enabled: true, Waiting: s.Waiting, Delivering: s.Leased,
		Unknown: unknownOrders(s.Asking, s.Stuck), Stuck: s.Stuck, OldestMS: age(s.Oldest), PerSecond: s.PerSecond,
		Limit: s.Limit, MaxInFlight: pace.MaxInFlight,
		Rate: int(pace.Rate), Attempts: s.Attempts, Expired: s.Expired, More: len(s.SKUs) > limit}
	for _, one := range s.SKUs[:min(len(s.SKUs), limit)] {
		state.SKUs = append(state.SKUs, queueOfSKU(&one, age(one.Oldest)))
	}
	return state
}

func queueOfSKU(s *queue.SKUStatus, age int64) admin.QueueOfSKU {
	return admin.QueueOfSKU{SKU: s.SKU, Waiting: s.Waiting, Delivering: s.Leased,
		Unknown: unknownOrders(s.Asking, s.Stuck), Stuck: s.Stuck, Delivered: s.Delivered, OldestMS: age,
		PerSecond: s.PerSecond, ETAMS: s.ETA.Milliseconds()}
}

// unknownOrders is how many are asked about; stuck ones were counted at another time.
func unknownOrders(asking, stuck int64) int64 { return max(asking-stuck, 0) }

// Take implements admin.Queue.
func (q *orderQueue) Take(ctx context.Context, sku string, n int, lease time.Duration) ([]admin.QueuedOrder, error) {
	if !q.options.Load().Pulls {
		return nil, fmt.Errorf("take: %w: orders are sent to the upstream here; queue.pull = \"30s\" has consumers take them",
			admin.ErrConflict)
	}
	if q.Reserver() == nil {
		return nil, fmt.Errorf("take: %w: the ledger could not be opened yet", admin.ErrConflict)
	}
	pulled, err := q.deliverer.Pull(ctx, queue.PullCall{SKU: sku, Orders: n, Lease: lease})
	if errors.Is(err, ledger.ErrUnknownSKU) {
		return nil, fmt.Errorf("%w: %w", admin.ErrNoSKU, err)
	}
	var orders []admin.QueuedOrder
	for i := range pulled {
		p := &pulled[i]
		one := admin.QueuedOrder{SKU: p.SKU, Serial: p.Serial, Attempt: p.Attempt, Quantity: p.Quantity,
			Receipt: p.Receipt + "." + q.seal(p.SKU, p.Serial, p.Receipt),
			User:    p.User, Deadline: time.UnixMilli(p.Deadline).UTC(), Method: p.Message.Method, Target: p.Message.Target,
			Headers: make(map[string]string), Body: []byte(p.Message.Body)}
		for _, f := range p.Message.Fields {
			between := ", " // RFC 9110, section 5.3
			if strings.EqualFold(f.Name, "Cookie") {
				between = "; "
			}
			if before := one.Headers[f.Name]; before != "" {
				f.Value = before + between + f.Value
			}
			one.Headers[f.Name] = f.Value
		}
		orders = append(orders, one)
	}
	return orders, err
}

// seal shows that a receipt was given out for an order. No serial has its spaces, so that it is no client's proof.
func (q *orderQueue) seal(sku, serial, receipt string) string {
	return q.Proof(sku, "receipt "+receipt+" of "+serial)
}

// opened is the receipt that was given out for an order as sealed.
func (q *orderQueue) opened(sku, serial, sealed string) (receipt string, ok bool) {
	at := max(strings.LastIndexByte(sealed, '.'), 0)
	receipt = sealed[:at]
	want := q.seal(sku, serial, receipt)
	return receipt, want != "" && subtle.ConstantTimeCompare([]byte(sealed[at:]), []byte("."+want)) == 1
}

var outcomeMoves = map[string]ledger.Move{"confirmed": ledger.MoveConfirm, "released": ledger.MoveRelease,
	"again": ledger.MoveNotNow}

// Settle implements admin.Queue.
func (q *orderQueue) Settle(ctx context.Context, s admin.QueueOutcome) (string, error) {
	receipt, ok := q.opened(s.SKU, s.Serial, s.Receipt)
	if !ok {
		return "", fmt.Errorf("%w: receipt %.60q was not given out for this order; send the one that take has answered",
			admin.ErrInvalid, s.Receipt)
	}
	c := queue.SettleCall{SKU: s.SKU, Serial: s.Serial, Receipt: receipt, Move: outcomeMoves[s.Outcome]}
	var err error
	if s.After != "" {
		c.After, err = time.ParseDuration(s.After)
	}
	if c.Move == "" || err != nil || c.After < 0 || c.After > maxRetryAfter {
		return "", fmt.Errorf(`%w: outcome is "confirmed", "released" or "again"; after is "0s" to "10m"`, admin.ErrInvalid)
	}
	if s.Answer != nil {
		if s.Answer.Status < 200 || s.Answer.Status > 599 {
			return "", fmt.Errorf("%w: the status of an answer is 200 to 599", admin.ErrInvalid)
		}
		c.Answer = queue.KeptAnswer(s.Answer.Status, func(name string) string { return headerValue(s.Answer.Headers, name) },
			s.Answer.Body)
	}
	done, err := q.deliverer.Settle(ctx, c)
	if err != nil {
		return "", err
	}
	switch done {
	case ledger.Changed:
		return "changed", nil
	case ledger.Already, ledger.WasRefunded:
		return "already", nil
	case ledger.TooLate:
		return "too_late", nil
	case ledger.WasSold, ledger.WasReleased:
		return "contradicts", nil
	}
	return "unknown", nil
}

const maxRetryAfter = 10 * time.Minute

// headerValue is the value of a header field, whose name may have any case. A line end is none.
func headerValue(all map[string]string, name string) string {
	for k, v := range all {
		if strings.EqualFold(k, name) && !strings.ContainsAny(v, "\r\n\x00") {
			return v
		}
	}
	return ""
}
