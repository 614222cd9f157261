package protocol

import (
	"context"
	"errors"
)

// Notifier is a store that sends notifications.
type Notifier interface {
	// Listen calls onNotify with each notification until ctx ends, and onGap whenever some may have been lost. Both are
	// called from this goroutine.
	Listen(ctx context.Context, onNotify func(sku string, h StockVersion), onGap func())
}

// Counter is a store that counts what users have.
type Counter interface {
	// UnitsOf tells by position how many units users hold or have bought of several SKUs, at most MaxItems of
	// MaxTogether.
	UnitsOf(ctx context.Context, skus, users []string) []Owned
}

// Owned is what a ledger says of users.
type Owned struct {
	Units []int64 // by position; nil = it has no ledger
	State State   // of the SKU. The units of one that is frozen, verifying or lost may be more
	Err   error
}

// Backlogged is a store whose changes wait for a consumer to acknowledge them.
type Backlogged interface {
	// Backlog tells by position of which SKUs too many changes wait, or could not be counted; nil = of none.
	Backlog(ctx context.Context, skus []string) []error
}

// Recreator is a store whose ledgers may vanish.
type Recreator interface {
	// Recreate makes a ledger that is gone, whole or in part, once more. It is frozen until the orders of before are
	// adopted and SetState opens it. none says that there are no orders. A whole ledger is ErrExists.
	Recreate(ctx context.Context, sku string, total, limit int64, none bool) (Stock, error)

	// LostSKUs returns at most limit SKUs that the store lists, and whose ledger is gone or was never made.
	LostSKUs(ctx context.Context, limit int) ([]string, error)
}

// Overruler is a store in which the state of a SKU can be another one for a while.
type Overruler interface {
	// Overrule puts the SKU into a state, Paused or Ended, until Reinstate with the same number, a later Overrule or
	// SetState. Numbers rise, and have at most 15 digits. Each begins once and ends once: a call that comes again, or
	// after the end, changes nothing. before is what the SKU will be again. inForce is false where the number has ended,
	// a later one has come, SetState has said otherwise, or the ledger is frozen or verifying. Without a ledger it is
	// ErrUnknownSKU.
	Overrule(ctx context.Context, sku string, state State, number int64) (s Stock, before State, inForce bool, err error)

	// Reinstate ends what Overrule did under a number and those before it, or would do later. A ledger that is frozen
	// gets its state back when it is recovered.
	Reinstate(ctx context.Context, sku string, number int64) (Stock, error)
}

// ErrBacklog is the cause when more changes wait for their consumer than they may.
var ErrBacklog = errors.New("changes wait for their consumer")

// ErrFewReplicas is the cause when it was done, but too few replicas had it in time: a fail-over could undo it.
var ErrFewReplicas = errors.New("too few replicas have it")
