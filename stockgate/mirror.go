package stockgate

import (
	"context"

	"github.com/redis/go-redis/v9"
)

// Mirror makes the shop's own key of sku show how many units a ledger has free, as of a version of it. It reports false
// where the key shows a later version already. After an error nobody knows whether it was written, and the same call
// finds out.
func (r *Redis) Mirror(ctx context.Context, sku string, free, epoch, ver int64) (written bool, err error) {
	err = r.call(ctx, r.at(sku), set, 1, func(ctx context.Context, c *redis.Client) error {
		written, err = r.layout.Load().Mirror(ctx, c, sku, free, epoch, ver)
		return err
	})
	return written, err
}
