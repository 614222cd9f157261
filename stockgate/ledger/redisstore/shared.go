package redisstore

import (
	"context"
	"encoding/hex"
	"fmt"

	"github.com/redis/go-redis/v9"

	"sluice/stockgate/ledger/protocol"
)

// What all instances on one Redis have in common. Neither key ever expires.
const (
	secretKey = "sluice:secret"    // hexadecimal, made by the first instance
	marksKey  = "sluice:instances" // how many marks were given out
)

// Secret returns the secret of all instances on this Redis. The first that asks makes it.
func (r *Store) Secret(ctx context.Context) (secret []byte, err error) {
	fresh := protocol.NewSecret()
	var text string
	secretKey := r.prefix + secretKey
	err = r.link.To(secretKey).Do(ctx, func(ctx context.Context, c *redis.Client) error {
		if err := c.SetNX(ctx, secretKey, hex.EncodeToString(fresh), 0).Err(); err != nil {
			return err
		}
		text, err = c.Get(ctx, secretKey).Result()
		return err
	}, fault)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", secretKey, err)
	}
	if secret, err = hex.DecodeString(text); err != nil || len(secret) < 16 {
		return nil, fmt.Errorf("read %s: it holds no secret of at least 16 bytes in hexadecimal", secretKey)
	}
	return secret, nil
}

// Mark returns a DeskOptions.Mark that none of the last thousand instances on this Redis got.
func (r *Store) Mark(ctx context.Context) (mark int64, err error) {
	marksKey := r.prefix + marksKey
	err = r.link.To(marksKey).Do(ctx, func(ctx context.Context, c *redis.Client) error {
		mark, err = c.Incr(ctx, marksKey).Result()
		return err
	}, fault)
	if err != nil {
		return 0, fmt.Errorf("count %s: %w", marksKey, err)
	}
	return 1 + mark%(protocol.Marks-1), nil
}
