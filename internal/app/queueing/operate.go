package queueing

import (
	"time"

	"sluice/admin"
	"sluice/queue"
)

// Admin is the queue for the control API; nil = there is none.
func (q *Queue) Admin() admin.Queue {
	if q == nil {
		return nil
	}
	return operated{q}
}

// operated implements admin.Queue.
type operated struct{ *Queue }

func (o operated) State(limit int) admin.QueueState {
	now := time.Now()
	s := o.deliverer.Status(now)
	age := func(oldest int64) int64 {
		if oldest == 0 {
			return 0
		}
		return max(now.UnixMilli()-(oldest-o.within.Milliseconds()), 0)
	}
	state := admin.QueueState{Enabled: true, Waiting: s.Waiting, Delivering: s.Leased, Unknown: unknown(s.Asking, s.Stuck),
		Stuck: s.Stuck, OldestMS: age(s.Oldest), PerSecond: s.PerSecond, Limit: s.Limit, MaxInFlight: o.settings.MaxInFlight,
		Rate: int(o.settings.Rate), Attempts: s.Attempts, Expired: s.Expired, More: len(s.SKUs) > limit}
	for _, one := range s.SKUs[:min(len(s.SKUs), limit)] {
		state.SKUs = append(state.SKUs, ofSKU(&one, age(one.Oldest)))
	}
	return state
}

func ofSKU(s *queue.SKUStatus, age int64) admin.QueueOfSKU {
	return admin.QueueOfSKU{SKU: s.SKU, Waiting: s.Waiting, Delivering: s.Leased, Unknown: unknown(s.Asking, s.Stuck),
		Stuck: s.Stuck, Delivered: s.Delivered, OldestMS: age, PerSecond: s.PerSecond, ETAMS: s.ETA.Milliseconds()}
}

// unknown is how many are asked about; stuck ones were counted at another time.
func unknown(asking, stuck int64) int64 { return max(asking-stuck, 0) }
