package ledger

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// endless is a shelf whose records, while it is slow, come to no end.
type endless struct {
	*shelf
	slow atomic.Bool
}

func (e *endless) Records(ctx context.Context, sku string, see func(Record) bool) error {
	err := e.shelf.Records(ctx, sku, see)
	if e.slow.Load() {
		<-ctx.Done()
		return ctx.Err()
	}
	return err
}

// Winners who cannot be read in time are too many, as where they find no room; only, they are read again later.
func TestWinnersWhoTakeTooLongToReadLockNobodyOut(t *testing.T) {
	at(t, func(t *testing.T) {
		o := deskOptions()
		o.MaxWait = 500 * time.Millisecond
		_, s := soldOut(t, o)
		e := &endless{shelf: s}
		e.slow.Store(true)
		other := opened(t, o, e, nil)
		wants(t, "a loser", other.buy("zoe", ""), SoldOut)
		time.Sleep(time.Second)
		other.spend()
		wants(t, "a key that may be anybody's", other.buy("zoe", "key"), Overloaded)
		wants(t, "a user without a key", other.buy("zoe", ""), SoldOut)
		e.slow.Store(false)
		before := s.count("records")
		time.Sleep(15 * time.Second)
		other.buy("zoe", "")
		synctest.Wait()
		want(t, "readings", s.count("records"), before+1)
		other.spend()
		wants(t, "when they could be read", other.buy("zoe", "key"), SoldOut)
	})
}

// Whether a SKU is paused or over is true of winners as well: nobody has to come again to hear it.
func TestWhoMayHaveWonHearsThatTheSaleIsPaused(t *testing.T) {
	at(t, func(t *testing.T) {
		_, s := soldOut(t, deskOptions())
		other := opened(t, deskOptions(), s, nil)
		s.set(losing(1, 0, "records"))
		must[Stock](t)(s.SetState(t.Context(), sku, Paused))
		wants(t, "the first", other.buy("ann", ""), NotOnSale)
		synctest.Wait()
		other.spend()
		wants(t, "a user without a key", other.buy("zoe", ""), NotOnSale)
	})
}
