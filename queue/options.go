// Package queue delivers orders that wait in a ledger to the upstream, at the upstream's pace.
//
// It promises that an attempt is sent once, that an order is sent again only when no attempt of it can make it any more
// or the upstream makes one order of all of them (Options.ByKey), and that the upstream never has more orders at once
// than the limit, over all instances and across crashes.
//
// It does not decide what cannot be known: such an order stays held, and a person is told.
//
// # The way of an order
//
//	reserve with a request ──► waits ──► Take ──► Send ──► Decide: confirmed, released, waits again
//	                             ▲                  └─► unknown: its lease ends ──► status_url ──► confirmed
//	                             └────────────── the upstream has none, and the fence has passed ◄─┘
package queue

import (
	"context"
	"log/slog"
	"time"

	"github.com/valyala/fasthttp"

	"sluice/proxy/auth"
	"sluice/proxy/metrics"
	"sluice/stockgate/ledger"
	"sluice/upstream"
)

// Store is what a deliverer asks of the ledgers: a *ledger.Store, or in tests one that counts calls or fails.
//
// An order that waits is held, like every other; what a Store says of it besides is where it is on its way to the
// upstream. All of it goes when the reservation is decided, by whichever call. An order that is handed out was not sent
// to the upstream, or an attempt of it is known to have come to nothing. What a ledger that has lost its last changes
// says of orders is not believed: they are asked about first.
type Store interface {
	Slots(ctx context.Context, c ledger.SlotCall) (granted int, err error)
	HandOut(ctx context.Context, sku string, c ledger.HandOutCall) (ledger.HandedOut, error)
	Decide(ctx context.Context, sku string, c ledger.DecideCall) ([]ledger.Done, ledger.StockVersion, error)
	Positions(ctx context.Context, sku string, serials []string) ([]ledger.Position, error)
	Depths(ctx context.Context, skus []string) ([]ledger.Depth, error)
	Names(ctx context.Context, after string) ([]string, error)
}

// Options say how orders are delivered. None may be missing but Signer, Source, Rate, SoldOut, News and Log.
type Options struct {
	Store Store

	Send    func(*upstream.Request, *fasthttp.Response) upstream.Outcome // once, as upstream.Pool.Send
	Outcome func(*fasthttp.Response) metrics.OrderOutcome
	Signer  *auth.Signer    // nil = what the upstream is told is not signed
	Ask     ledger.AskOrder // nil = the upstream cannot be asked

	// Fenced: the upstream makes no order after its Sluice-Deadline. Cancels: one that it was asked for and does not know
	// it never makes.
	Fenced, Cancels bool

	MaxInFlight int           // orders in the upstream at once, over all instances and SKUs
	Rate        float64       // orders a second that begin, likewise; 0 = no limit
	Attempts    int           // after so many an order waits for a person
	MaxOrder    int           // bytes of the longest order; 0 = it is not known
	ByKey       bool          // the upstream makes one order of all attempts with an Idempotency-Key
	Pulls       bool          // consumers take orders by Pull; nothing is sent
	Timeout     time.Duration // of a first attempt; where consumers take orders, the longest lease
	Grace       time.Duration // by how much the upstream's clock may be late
	Keep        time.Duration // how long a release is remembered

	Settled func(sku, serial string, op ledger.Op, h ledger.StockVersion) // an order was settled here
	Settle  func(sku, serial string, op ledger.Op)                        // settles what Decide could not

	SoldOut func(sku string) // the upstream says that its own stock is used up; nil = no one listens

	// this instance has handed an order out, or settled it; nil = no one listens
	News func(sku string, p ledger.Position)

	Log *slog.Logger // nil = slog.Default()
}

// takeBytes is about how many bytes of orders one call of the store hands out: its reply must not take longer than a
// call may, or else all of them would be handed out to no one.
const takeBytes = 2 << 20

// atOnce is how many orders one call hands out.
func (o *Options) atOnce() int { return min(max(takeBytes/max(o.MaxOrder, 1), 1), ledger.MaxItems) }

const (
	answerFor     = 15 * time.Minute // how long an answer is kept at least; twice as long at most
	maxAnswerBody = 16 << 10         // bytes
)
