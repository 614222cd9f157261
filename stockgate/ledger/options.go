package ledger

import (
	"errors"
	"log/slog"
	"math/rand/v2"
	"time"
)

// Options say how a reserver works. Zero values are replaced by the defaults that are named here.
type Options struct {
	Secret     []byte        // derives serials; the same for all instances, at least 16 bytes
	PerUser    int64         // units a user may have, as in the ledger; 0 = no limit
	Hold       time.Duration // how long a unit is held until the resolver looks; default 15 min
	Keep       time.Duration // how long a released serial is remembered; default 24 h
	OnNotFound string        // why a missing order cannot still arrive: see below
	Grace      time.Duration // by how much the upstream's clock may be late; default 5 s

	Timeout       time.Duration // of one call to the store; default 250 ms
	MaxBatch      int           // orders in one call to the store, at most 256; default 64
	Tries         int           // sendings of a batch before its orders hear Unsure; default 3
	Resend        time.Duration // so long after its first sending a batch is not sent again; default Tries x Timeout
	MaxWait       time.Duration // how old an order may be when it enters a batch; default 500 ms
	MaxQueue      int           // orders that wait for units of one SKU; default 8192
	MaxSKUs       int           // default 131,072: 100,000 with a ledger, and room for invented ones
	MaxKnown      int           // orders that are remembered here, rounded up to a power of two; default 65,536
	MaxSettling   int           // settlements that wait for the store; default 65,536
	SettleWait    time.Duration // for room among them; default 1 s
	SoldOutMemory time.Duration // at the latest after this the stock of a sold-out SKU is read again; default 1 s

	// Mark, 1 to 1023, tells this instance's reservations from those of others. Instances with equal marks could, in an
	// outage, take a reservation of the same second and the same serial for their own. 0 = a random one.
	Mark int64

	Mirror Mirror // shows what is free; nil = none

	Named      []string         // SKUs whose orders metrics count by themselves
	MetricSKUs int              // ledgers whose numbers metrics name; default 100
	Now        func() int64     // ns, the clock of the callers; default one that starts at 0
	Wall       func() time.Time // of the hours of sale: the same for all instances; default time.Now
	Clock      func() time.Time // of this machine, by which holds end; default time.Now
	Log        *slog.Logger     // default slog.Default()
}

// The reasons why an order that the upstream does not know cannot still arrive.
const (
	fenceNone     = "keep"
	fenceDeadline = "release_after_deadline" // the upstream rejects work after the deadline it was told
	fenceCancel   = "cancel_then_release"    // the upstream marks a serial that it was asked for and does not know
	fenceHold     = "release_after_ttl"      // no work of the upstream lasts as long as a reservation
)

// checked returns o with its defaults.
func (o Options) checked() (Options, error) {
	if len(o.Secret) < 16 {
		return o, errors.New("open reserver: the secret has fewer than 16 bytes")
	}
	switch o.OnNotFound {
	case "":
		o.OnNotFound = fenceNone
	case fenceNone, fenceDeadline, fenceCancel, fenceHold:
	default:
		return o, errors.New("open reserver: unknown OnNotFound " + o.OnNotFound)
	}
	if o.Mark < 0 || o.Mark >= numMarks {
		return o, errors.New("open reserver: the mark is not within 1 to 1023")
	}
	if o.MaxBatch > MaxItems {
		return o, errors.New("open reserver: more than 256 orders in a batch")
	}
	if o.Mark == 0 {
		o.Mark = 1 + rand.Int64N(numMarks-1)
	}
	fill(&o.Hold, 15*time.Minute)
	fill(&o.Keep, 24*time.Hour)
	fill(&o.Grace, 5*time.Second)
	fill(&o.Timeout, 250*time.Millisecond)
	fill(&o.MaxBatch, 64)
	fill(&o.Tries, 3)
	fill(&o.MaxWait, 500*time.Millisecond)
	fill(&o.Resend, time.Duration(o.Tries)*o.Timeout)
	fill(&o.MaxQueue, 8192)
	fill(&o.MaxSKUs, 1<<17)
	fill(&o.MaxKnown, 65_536)
	fill(&o.MaxSettling, 65_536)
	fill(&o.SettleWait, time.Second)
	fill(&o.SoldOutMemory, time.Second)
	fill(&o.MetricSKUs, 100)
	if o.Now == nil {
		start := time.Now()
		o.Now = func() int64 { return int64(time.Since(start)) }
	}
	if o.Wall == nil {
		o.Wall = time.Now
	}
	if o.Clock == nil {
		o.Clock = time.Now
	}
	if o.Log == nil {
		o.Log = slog.Default()
	}
	return o, nil
}

// fill puts a default in the place of a number that is not positive.
func fill[T int | int64 | time.Duration](v *T, by T) {
	if *v <= 0 {
		*v = by
	}
}
