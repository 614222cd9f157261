package ledger

import (
	"context"
	"errors"
	"fmt"
)

// Add changes the total by delta, which is not 0. A total that would be less than held + sold is an error that names
// both. id, 1 to 128 visible ASCII bytes, lets it be repeated: of the last 100 ids each changes the total once, and one
// that was used for another delta is errOtherDelta. "" = each call counts. Without a ledger it is
// ErrUnknownSKU.
func (r *Store) Add(ctx context.Context, sku string, delta int64, id string) (s Stock, err error) {
	defer describe(&err, "add to", sku)
	s, found, err := r.change(ctx, checkAdd(sku, delta, id),
		&scriptCall{script: "add", sku: sku, args: []any{r.events, delta, id, maxAdditions}})
	switch {
	case err != nil:
	case found == rejected:
		err = totalTooSmall(s.Total+delta, s.Held, s.Sold)
	case found == conflict:
		err = errOtherDelta
	}
	return s, err
}

// SetSchedule says from when until when the SKU is on sale, in Unix ms; 0 = no such bound. Outside of them a reserve
// is NotOnSale by the time that its caller gives. Without a ledger it is ErrUnknownSKU.
func (r *Store) SetSchedule(ctx context.Context, sku string, opens, closes int64) (s Stock, err error) {
	defer describe(&err, "set hours of", sku)
	s, _, err = r.change(ctx, checkSchedule(sku, opens, closes),
		&scriptCall{script: "set_schedule", sku: sku, args: []any{r.events, opens, closes}})
	return s, err
}

// SetState opens, pauses, ends or freezes; freezing raises the epoch, each time, but where a later one was seen
// on another server: then opening does. Without a ledger it is ErrUnknownSKU.
func (r *Store) SetState(ctx context.Context, sku string, state State) (s Stock, err error) {
	defer describe(&err, "set state of", sku)
	s, _, err = r.change(ctx, errors.Join(CheckSKU(sku), checkState(state)),
		&scriptCall{script: "set_state", sku: sku, args: []any{r.events, string(state), ""}})
	return s, err
}

// SetPaid ends a SKU of which every unit is paid, or opens it again where it has ended by that. done is false, and
// nothing changes, where an operator has ended it or overrides its state, and where it is to end but is paused, frozen
// or not sold whole.
func (r *Store) SetPaid(ctx context.Context, sku string, state State) (done bool, err error) {
	defer describe(&err, "set state of", sku)
	_, n, err := r.change(ctx, errors.Join(CheckSKU(sku), checkState(state)),
		&scriptCall{script: "set_state", sku: sku, args: []any{r.events, string(state), "paid"}})
	return n == 1, err
}

// Why a ledger is not archived, by the number that archive.lua replies.
var notArchived = map[int64]error{
	2: errors.New("it has changed since it was compared; try again"),
	3: errors.New("its sale is not over: end it with sluice stock end, or wait until it closes"),
	4: errors.New("orders are undecided: wait until the resolver has decided them"),
	5: errors.New("another Redis server has taken over, and not every gateway has called it since: start those that are " +
		"down, and try again in a minute; one that was gone for a day is not waited for"),
	6: errors.New("it is frozen: sluice stock recover shows both books, and ends it with --state ended --apply"),
}

// Archive forgets the orders of a sale that is over, where the ledger is still at an epoch and version: the caller has
// all of them elsewhere. The ledger and its stream stay, with no unit, and ended. A second call changes nothing.
func (r *Store) Archive(ctx context.Context, sku string, epoch, ver int64) (err error) {
	defer describe(&err, "archive", sku)
	_, found, err := r.change(ctx, CheckSKU(sku),
		&scriptCall{script: "archive", sku: sku, args: []any{r.events, epoch, ver}, more: r.queueKeys(sku)})
	if err == nil {
		err = notArchived[found]
	}
	return err
}

// Create makes the ledger, with its hours, where there is none; made is false where there is one, which stays as it
// is. One that is known to have been lost is ErrLost.
func (r *Store) Create(ctx context.Context, sku string, o Opening) (s Stock, made bool, err error) {
	defer describe(&err, "create", sku)
	if err = o.Check(sku); err != nil {
		return s, false, err
	}
	reply, err := r.makeLedger(ctx, "create", sku, r.events, o.Total, o.Limit, o.Opens, o.Closes)
	if err != nil {
		return s, false, err
	}
	s, found, err := stockOf(reply)
	return s, found == done, err
}

// SetTotal makes the ledger, which is then on sale, or changes its total; less than held + sold is an error that names
// both. limit is what one person may have; 0 = no limit; KeepLimit = as it is, and without a ledger that is
// ErrUnknownSKU, since how many a person may have is not to be guessed. To make a SKU that goes on sale later,
// make it with no units, set its hours, and then its total. Where a ledger was before and is gone it is
// ErrLost.
func (r *Store) SetTotal(ctx context.Context, sku string, total, limit int64) (s Stock, err error) {
	defer describe(&err, "set total of", sku)
	var found int64
	wrong := checkTotal(sku, total, limit)
	if wrong != nil || limit == KeepLimit {
		s, found, err = r.change(ctx, wrong,
			&scriptCall{script: "set_total", sku: sku, args: []any{r.events, total, limit, false}})
	} else {
		var reply []any
		if reply, err = r.makeLedger(ctx, "set_total", sku, r.events, total, limit); err == nil {
			s, found, err = stockOf(reply)
		}
	}
	if err == nil && found == rejected {
		err = totalTooSmall(total, s.Held, s.Sold)
	}
	return s, err
}

// Recreate makes a ledger that is gone, whole or in part, once more. It is frozen until the orders of before are
// adopted and SetState opens it. none says that there are no orders. A whole ledger is ErrExists.
func (r *Store) Recreate(ctx context.Context, sku string, total, limit int64, none bool) (s Stock, err error) {
	defer describe(&err, "recreate", sku)
	if limit == KeepLimit {
		return s, errors.New("how many a person may have is not said")
	}
	if err = checkTotal(sku, total, limit); err != nil {
		return s, err
	}
	if _, err = r.register(ctx, sku); err != nil {
		return s, err
	}
	reply, err := r.call(ctx, &scriptCall{script: "recreate", sku: sku, args: []any{r.events, total, limit, none},
		aside: true, more: r.queueKeys(sku)})
	if err != nil {
		return s, err
	}
	if len(reply) == 1 {
		return s, fmt.Errorf("%w, %v of them: take those that the upstream has (--from FILE)", ErrOrdersLeft,
			reply[0])
	}
	s, found, err := stockOf(reply)
	if err == nil && found == rejected {
		err = fmt.Errorf("%w: to take orders into it, leave --total out", ErrExists)
	}
	return s, err
}

// Overrule puts the SKU into a state, Paused or Ended, until Reinstate with the same number, a later
// Overrule or SetState. Numbers rise, and have at most 15 digits. Each begins once and ends once: a call that comes
// again, or after the end, changes nothing. before is what the SKU will be again. inForce is false where the number has
// ended, a later one has come, SetState has said otherwise, or the ledger is frozen or verifying. Without a ledger it
// is ErrUnknownSKU.
func (r *Store) Overrule(ctx context.Context, sku string, state State, number int64) (
	s Stock, before State, inForce bool, err error,
) {
	if state != Paused && state != Ended {
		return s, "", false, fmt.Errorf("overrule %q: it cannot be %q for a while", sku, state)
	}
	return r.overrule(ctx, sku, state, number)
}

// Reinstate ends what Overrule did under a number and those before it, or would do later. A ledger that is frozen
// gets its state back when it is recovered.
func (r *Store) Reinstate(ctx context.Context, sku string, number int64) (Stock, error) {
	s, _, _, err := r.overrule(ctx, sku, "", number)
	return s, err
}

func (r *Store) overrule(ctx context.Context, sku string, state State, number int64) (
	s Stock, before State, inForce bool, err error,
) {
	defer describe(&err, "overrule", sku)
	reply, err := r.ask(ctx, errors.Join(CheckSKU(sku), checkOverruling(number)),
		&scriptCall{script: "overrule", sku: sku, args: []any{r.events, number, string(state)}})
	if err == nil && len(reply) != stockSize+1 {
		err = fmt.Errorf("%d values came back", len(reply))
	}
	if err != nil {
		return s, "", false, err
	}
	s, found, err := stockOf(reply[:stockSize])
	return s, State(fmt.Sprint(reply[stockSize])), found == done, err
}

// change is ask of a script that replies with all numbers, and what came of what was asked for.
func (r *Store) change(ctx context.Context, wrong error, q *scriptCall) (s Stock, found int64, err error) {
	reply, err := r.ask(ctx, wrong, q)
	if err != nil {
		return s, rejected, err
	}
	return stockOf(reply)
}

// ask calls a script of a ledger that must be there, unless what is asked for is wrong.
func (r *Store) ask(ctx context.Context, wrong error, q *scriptCall) (reply []any, err error) {
	if wrong != nil {
		return nil, wrong
	}
	if reply, err = r.call(ctx, q); err == nil && reply == nil {
		err = r.noLedger(ctx, q.sku)
	}
	return reply, err
}
