package ledger

import (
	"context"
	"fmt"
	"time"
)

// recover runs recover.lua, with all its arguments but the first one, for the settlers of a home; nil = for this
// instance.
func (r *Store) recover(ctx context.Context, sku string, as *homeClaim, args []any) (s Result, err error) {
	reply, err := r.call(ctx, &scriptCall{script: "recover", sku: sku, as: as, args: append([]any{r.events}, args...)})
	if err == nil && reply == nil {
		err = ErrUnknownSKU
	}
	if err != nil {
		return s, err
	}
	return resultOf(reply)
}

// CloseLost closes the SKU, whose ledger has lost a version that this instance has heard of, as a call does that has
// seen it: the SKU opens when every instance has told what it knows. One of an earlier epoch is an operator's to open.
func (r *Store) CloseLost(ctx context.Context, sku string, heard StockVersion) (h StockVersion, err error) {
	defer describe(&err, "close", sku)
	claim := Claim{Epoch: heard.Epoch, Ver: heard.Ver, Sale: heard.Sale, Lost: lostVersion}
	reply, err := r.ask(ctx, CheckSKU(sku), &scriptCall{script: "visit", sku: sku, args: []any{r.events},
		as: &homeClaim{name: r.instance, Claim: claim}})
	if err != nil {
		return h, err
	}
	return versionOf(reply)
}

// homeClaim is what a call claims to have seen that is made for the settlers of a home, or by what was only heard.
type homeClaim struct {
	name string // of the instance; the settlers of a home are one together, and mark.lua knows its beginning
	Claim
}

// settlerOf is the settlers of a home, as an instance.
func settlerOf(home string, c Claim) *homeClaim {
	return &homeClaim{name: "settle:" + home, Claim: c}
}

// lostSettled is why a ledger froze in which a settler found that settled orders are gone.
const lostSettled = "settled"

// JoinRecovery freezes a ledger that stands at a version and has lost what was settled in a home, unless it is frozen,
// and has it wait until ToldSettled of the same home: another database does not know what this one knows. born is the
// first epoch of the ledger: who claims an earlier one says that the ledger is gone.
func (r *Store) JoinRecovery(ctx context.Context, home, sku string, at StockVersion, born int64) error {
	claim := Claim{Epoch: at.Epoch, Ver: at.Ver, Lost: lostSettled}
	if at.State == Frozen {
		claim = Claim{Epoch: max(at.Epoch-1, born)} // it was open then
	}
	_, err := r.recoverHome(ctx, sku, settlerOf(home, claim), 0, 0)
	return err
}

// Outrun closes the ledger for an operator if it is older than a version that was settled.
func (r *Store) Outrun(ctx context.Context, home, sku string, at StockVersion) error {
	_, err := r.recoverHome(ctx, sku, settlerOf(home, Claim{Epoch: at.Epoch, Ver: at.Ver}), 0, 0)
	return err
}

// ToldSettled says that a ledger which is frozen in an epoch has everything that was settled in a home. It is to be
// called until the SKU is open: the last one who has told opens it.
func (r *Store) ToldSettled(ctx context.Context, home, sku string, epoch int64) (Result, error) {
	return r.recoverHome(ctx, sku, settlerOf(home, Claim{}), 2, epoch)
}

func (r *Store) recoverHome(ctx context.Context, sku string, as *homeClaim, phase int,
	epoch int64) (s Result, err error) {
	defer describe(&err, "recover", sku)
	if err := CheckSKU(sku); err != nil {
		return s, err
	}
	return r.recover(ctx, sku, as, []any{time.Now().UnixMilli(), 0, phase, epoch, r.Settle.Milliseconds(), 0})
}

// resultOf reads the reply of recover.lua.
func resultOf(reply []any) (s Result, err error) {
	if len(reply) != stockSize+4 {
		return s, fmt.Errorf("%d values came back for a recovery", len(reply))
	}
	var opened int64
	if s.Stock, opened, err = stockOf(reply[:stockSize]); err != nil {
		return s, err
	}
	was, ok1 := reply[stockSize+1].(string)
	restored, ok2 := reply[stockSize+2].(int64)
	waits, ok3 := reply[stockSize+3].([]any)
	here, ok4 := reply[stockSize].(int64)
	if !ok1 || !ok2 || !ok3 || !ok4 {
		return s, fmt.Errorf("the recovery %v cannot be read", reply[stockSize:])
	}
	for _, name := range waits {
		s.Waits = append(s.Waits, fmt.Sprint(name))
	}
	s.Here, s.Was, s.Restored, s.Opened = here, State(was), int(restored), opened == 1
	return s, nil
}
