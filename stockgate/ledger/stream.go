package ledger

import (
	"context"
	"fmt"
	"strings"

	"sluice/stockgate/redisconn"

	"github.com/redis/go-redis/v9"
)

// Acknowledge lets a SKU's stream forget its changes up to position, an id of it such as "1789000000-42": a consumer
// has them. Those that a consumer group of the stream has not finished stay, and so does the last one. It returns how
// many stay. A position ahead of the stream is an error; one that was passed before changes nothing.
//
// It is of use where Options.Acknowledged is set, and harmless elsewhere.
func (r *Store) Acknowledge(ctx context.Context, sku, position string) (left int64, err error) {
	defer describe(&err, "acknowledge changes of", sku)
	epoch, ver, ok := strings.Cut(position, "-")
	_, err1 := Digits(epoch)
	_, err2 := Digits(ver)
	if !ok || err1 != nil || err2 != nil {
		return 0, fmt.Errorf("%.40q is not a position", position)
	}
	if err := CheckSKU(sku); err != nil {
		return 0, err
	}
	reply, err := r.call(ctx,
		&scriptCall{script: "acknowledge", sku: sku, args: []any{epoch, ver}, aside: true, blind: true})
	if err != nil {
		return 0, err
	}
	if reply == nil {
		return 0, ErrUnknownSKU
	}
	if n, ok := integers(reply, 1); ok && n[0] > 0 {
		return n[0], nil
	}
	return 0, fmt.Errorf("%s is ahead of its stream", position)
}

// Backlog tells by position which streams that are trimmed by acknowledgements have grown too long, or could not be
// counted; nil = none.
func (r *Store) Backlog(ctx context.Context, skus []string) []error {
	if r.most == 0 {
		return nil
	}
	at, lengths := make([]string, len(skus)), make([]*redis.IntCmd, len(skus))
	for i, sku := range skus {
		at[i] = r.keys(sku)[4]
	}
	errs := r.link.Each(ctx, at, func(ctx context.Context, c redisconn.Commands, which []int) error {
		pipe := c.Pipeline()
		for _, i := range which {
			lengths[i] = pipe.XLen(ctx, at[i])
		}
		_, err := pipe.Exec(ctx)
		return err
	}, storeFault)
	if errs == nil {
		errs = make([]error, len(skus))
	}
	for i, n := range lengths {
		if n != nil && n.Err() == nil { // whatever became of the others
			errs[i] = nil
			if n.Val() > int64(r.most) {
				errs[i] = fmt.Errorf("%d %w", n.Val(), ErrBacklog)
			}
		}
	}
	return errs
}
