package ledger

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/redis/go-redis/v9"
)

// Acknowledge lets a SKU's stream forget its changes up to position, an id of it such as "1789000000-42": a consumer
// has them. Those that a consumer group of the stream has not finished stay, and so does the last one. It returns how
// many stay. A position ahead of the stream is an error; one that was passed before changes nothing.
//
// It is of use where RedisOptions.Acknowledged is set, and harmless elsewhere.
func (r *Redis) Acknowledge(ctx context.Context, sku, position string) (left int64, err error) {
	if err := checkSKU(sku); err != nil {
		return 0, fmt.Errorf("acknowledge changes of %q: %w", sku, err)
	}
	epoch, ver, ok := strings.Cut(position, "-")
	_, err1 := digits(epoch)
	_, err2 := digits(ver)
	if !ok || err1 != nil || err2 != nil {
		return 0, fmt.Errorf("acknowledge changes of %q: %.40q is not a position", sku, position)
	}
	reply, err := r.ask(ctx, &errand{script: "acknowledge", sku: sku, args: []any{epoch, ver}, aside: true, blind: true})
	if err != nil {
		return 0, fmt.Errorf("acknowledge changes of %q: %w", sku, err)
	}
	if len(reply) == 1 {
		left, _ = reply[0].(int64)
	}
	switch {
	case reply == nil:
		return 0, fmt.Errorf("acknowledge changes of %q: %w", sku, ErrUnknownSKU)
	case left < 1:
		return 0, fmt.Errorf("acknowledge changes of %q: %s is ahead of its stream", sku, position)
	}
	return left, nil
}

// errBehind is the cause when more changes wait for their consumer than RedisOptions.Events.
var errBehind = errors.New("changes wait for their consumer")

// behind tells whether a stream that is trimmed by acknowledgements has grown too long.
func (r *Redis) behind(ctx context.Context, sku string) error {
	if r.most == 0 {
		return nil
	}
	return r.at(sku).Do(ctx, func(ctx context.Context, c *redis.Client) error {
		n, err := c.XLen(ctx, keys(sku)[4]).Result()
		if err == nil && n > int64(r.most) {
			return fmt.Errorf("%d %w", n, errBehind)
		}
		return err
	}, func(err error) error {
		if errors.Is(err, errBehind) {
			return nil
		}
		return fault(err)
	})
}
