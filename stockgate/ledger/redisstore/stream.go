package redisstore

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/redis/go-redis/v9"

	"sluice/stockgate/ledger/protocol"
)

// Acknowledge lets a SKU's stream forget its changes up to position, an id of it such as "1789000000-42": a consumer
// has them. Those that a consumer group of the stream has not finished stay, and so does the last one. It returns how
// many stay. A position ahead of the stream is an error; one that was passed before changes nothing.
//
// It is of use where Options.Acknowledged is set, and harmless elsewhere.
func (r *Store) Acknowledge(ctx context.Context, sku, position string) (left int64, err error) {
	if err := protocol.CheckSKU(sku); err != nil {
		return 0, fmt.Errorf("acknowledge changes of %q: %w", sku, err)
	}
	epoch, ver, ok := strings.Cut(position, "-")
	_, err1 := protocol.Digits(epoch)
	_, err2 := protocol.Digits(ver)
	if !ok || err1 != nil || err2 != nil {
		return 0, fmt.Errorf("acknowledge changes of %q: %.40q is not a position", sku, position)
	}
	reply, err := r.call(ctx,
		&scriptCall{script: "acknowledge", sku: sku, args: []any{epoch, ver}, aside: true, blind: true})
	if err != nil {
		return 0, fmt.Errorf("acknowledge changes of %q: %w", sku, err)
	}
	if len(reply) == 1 {
		left, _ = reply[0].(int64)
	}
	switch {
	case reply == nil:
		return 0, fmt.Errorf("acknowledge changes of %q: %w", sku, protocol.ErrUnknownSKU)
	case left < 1:
		return 0, fmt.Errorf("acknowledge changes of %q: %s is ahead of its stream", sku, position)
	}
	return left, nil
}

// Why a ledger is not archived, by the number that archive.lua replies.
var notArchived = map[int64]error{
	2: errors.New("it has changed since it was compared; try again"),
	3: errors.New("its sale is not over: end it with sluice stock end, or wait until it closes"),
	4: errors.New("orders are undecided: wait until the resolver has decided them"),
}

// Archive forgets the orders of a sale that is over, where the ledger is still at an epoch and version: the caller has
// all of them elsewhere. The ledger and its stream stay, with no unit, and ended. A second call changes nothing.
func (r *Store) Archive(ctx context.Context, sku string, epoch, ver int64) error {
	if err := protocol.CheckSKU(sku); err != nil {
		return fmt.Errorf("archive %q: %w", sku, err)
	}
	reply, err := r.call(ctx, &scriptCall{script: "archive", sku: sku, args: []any{r.events, epoch, ver},
		more: queueKeys(sku)})
	if err == nil && reply == nil {
		err = r.noLedger(ctx, sku)
	}
	if err != nil {
		return fmt.Errorf("archive %q: %w", sku, err)
	}
	_, done, err := stockOf(reply)
	if err == nil {
		err = notArchived[done]
	}
	if err != nil {
		return fmt.Errorf("archive %q: %w", sku, err)
	}
	return nil
}

// Backlog tells which streams that are trimmed by acknowledgements have grown too long; nil = none.
func (r *Store) Backlog(ctx context.Context, skus []string) []error {
	if r.most == 0 {
		return nil
	}
	at, lengths := make([]string, len(skus)), make([]*redis.IntCmd, len(skus))
	for i, sku := range skus {
		at[i] = keys(sku)[4]
	}
	errs := r.link.Each(ctx, at, func(ctx context.Context, c *redis.Client, which []int) error {
		pipe := c.Pipeline()
		for _, i := range which {
			lengths[i] = pipe.XLen(ctx, at[i])
		}
		_, err := pipe.Exec(ctx)
		return err
	}, fault)
	if errs == nil {
		errs = make([]error, len(skus))
	}
	for i, n := range lengths {
		if n != nil && n.Err() == nil { // whatever became of the others
			errs[i] = nil
			if n.Val() > int64(r.most) {
				errs[i] = fmt.Errorf("%d %w", n.Val(), protocol.ErrBacklog)
			}
		}
	}
	return errs
}
