package loadtest

import (
	"maps"
	"time"

	"sluice/internal/load"
)

// Result is what happened, and what is advised.
type Result struct {
	Shape       string  `json:"shape"`
	Buyers      int     `json:"buyers"`
	Addresses   int     `json:"addresses"`
	Units       int64   `json:"units"`
	Took        float64 `json:"took_s"`
	Interrupted bool    `json:"interrupted,omitempty"`

	SoldOut   bool    `json:"sold_out"`
	FirstUnit float64 `json:"first_unit_s"` // after the start
	LastUnit  float64 `json:"sold_out_s"`   // likewise; 0 = not all were sold

	Requests       int64            `json:"requests"`
	StatusRequests int64            `json:"status_requests"`
	Rejected       map[string]int64 `json:"rejected"`
	Broken         int64            `json:"broken"`
	Queue          *Queue           `json:"queue,omitempty"`
	Room           *load.RoomCounts `json:"room,omitempty"`
	Buyer          Home             `json:"buyers_home"`
	Rejection      load.Times       `json:"rejections"`    // of the gate, from when the request was sent
	Order          load.Times       `json:"shops_answers"` // likewise
	Felt           load.Times       `json:"felt"`          // both, from when the buyer wanted it
	Shop           load.Totals      `json:"shop"`
	Ledger         *load.Ledger     `json:"ledger,omitempty"`
	Redis          Redis            `json:"redis"`
	Windows        Windows          `json:"windows"`
	CPU            CPU              `json:"cpu"`
	Crowd          Load             `json:"crowd"`
	Advice         []Advice         `json:"advice"`

	NotTested []string `json:"not_tested"`

	windows   float64 // of those while it was sold, the part that was full
	series    [4][]int64
	seriesEvy time.Duration
}

// Queue are the orders that were accepted, to wait until they are delivered.
type Queue struct {
	Accepted  int64      `json:"accepted"`
	Delivered int64      `json:"delivered"`         // confirmed
	Ended     int64      `json:"ended_without"`     // without an order
	Waiting   int64      `json:"still_waiting"`     // when the last buyer went home
	Answer    load.Times `json:"accepted_after_ms"` // from when the request was sent
}

// Home is how the buyers went home.
type Home struct {
	Bought   int64 `json:"bought"`
	SoldOut  int64 `json:"sold_out"`
	Rejected int64 `json:"turned_away"`
	Unsure   int64 `json:"unsure"`
	GaveUp   int64 `json:"gave_up"`
}

// Redis is what the gate asked of it.
type Redis struct {
	Calls    map[string]int64 `json:"calls"`
	PerOrder float64          `json:"calls_per_order"`
	Command  load.Times       `json:"command"`
}

// Windows are those in which a request was admitted, of the SKU or of all together, where they have a cap.
type Windows struct {
	Used int64 `json:"used"`
	Full int64 `json:"full"`
}

// CPU is the processor time of crowd, gateway and shop together, in seconds.
type CPU struct {
	Cores int     `json:"cores"`
	Used  float64 `json:"used_s"`
}

// Load is how well the crowd could be made.
type Load struct {
	Connections int        `json:"connections"`
	PeakPerS    int64      `json:"peak_requests_per_second"`
	Late        load.Times `json:"late"` // sent after it was due
	Saturated   bool       `json:"saturated"`
}

// lateness is what a crowd may be late by without being another crowd, in ms: 99 of 100 requests.
const lateness = 250

func (p *Plan) result(c *load.Crowd, took time.Duration, before, after GatewayReading) Result {
	r := Result{Shape: p.Shape, Buyers: p.Buyers, Addresses: p.Addresses, Took: load.Seconds(took), Shop: p.Shop.Totals()}
	first, last := r.Shop.First, r.Shop.Last
	r.Units = r.Shop.Units
	r.SoldOut, r.FirstUnit, r.LastUnit = last > 0, load.Seconds(first), load.Seconds(last)
	n := c.Counts()
	r.Requests, r.StatusRequests, r.Broken, r.Rejected = n.Requests, n.Lookups, n.Broken, n.Rejected
	if n.Accepted > 0 {
		r.Queue = &Queue{n.Accepted, n.Delivered, n.Ended, n.Accepted - n.Delivered - n.Ended, c.Accepted.Times()}
	}
	if p.Room != "" {
		r.Room = &n.Room
	}
	maps.Copy(r.Rejected, n.Unknown) // other reasons than the rejections
	r.Buyer = Home{
		Bought: n.Home[load.Bought] + n.Home[load.HadOne], SoldOut: n.Home[load.SoldOut],
		Rejected: n.Home[load.Rejected], Unsure: n.Home[load.Unsure], GaveUp: n.Home[load.GaveUp],
	}
	r.Rejection, r.Order, r.Felt = c.Rejections.Times(), c.Answers.Times(), c.Felt.Times()
	r.Ledger = after.Ledger
	r.Redis = Redis{Calls: map[string]int64{}, Command: after.Command}
	for kind, calls := range after.Calls {
		if calls -= before.Calls[kind]; calls > 0 {
			r.Redis.Calls[kind] = calls
			r.Redis.PerOrder += float64(calls) / float64(max(1, r.Shop.Orders))
		}
	}
	r.Windows = Windows{after.Windows - before.Windows, after.Saturated - before.Saturated}
	r.Crowd = Load{Connections: p.Connections, PeakPerS: c.Sent.Peak(100), Late: c.Late.Times()}
	r.Crowd.Saturated = r.Crowd.Late.P99 > lateness
	if selling := last - first; last > 0 && p.Limits.Window > 0 {
		r.windows = float64(r.Windows.Full) / max(1, float64(selling)/float64(p.Limits.Window))
	}
	width := max(1, int(took/load.Slice)/240)
	r.seriesEvy = time.Duration(width) * load.Slice
	came, sold := p.Shop.Series()
	for i, s := range []load.Series{c.Sent, c.Rejected, came, sold} {
		r.series[i] = s.Sums(width, took)
	}
	return r
}

// Err names the promises that were broken.
func (r *Result) Err() error {
	var wrong load.Complaints
	wrong.Add(r.Shop.Oversold > 0, "oversold: %d orders beyond the %d units", r.Shop.Oversold, r.Units)
	wrong.Add(r.Shop.Again > 0, "sent twice: %d orders", r.Shop.Again)
	if l := r.Ledger; l != nil && l.Own {
		shop := r.Shop
		shop.Units = r.Units // which is not twice in the JSON
		wrong.Balance(*l, shop, r.Interrupted)
	} else if l != nil {
		wrong.Add(!r.Interrupted && r.Shop.UnderWay == 0 && r.Shop.Unwritten == 0 && l.Free != r.Units-r.Shop.Orders,
			"balance: %d left in the stock that the gateway reads, and the shop sold %d of %d", l.Free, r.Shop.Orders, r.Units)
	}
	return wrong.Err()
}
