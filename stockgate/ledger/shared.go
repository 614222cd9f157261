package ledger

import (
	"context"
	"encoding/hex"
	"fmt"

	"sluice/stockgate/redisconn"
)

// What all instances of a name have in common. Neither key ever expires.

// secretKey holds a secret in hexadecimal, which the first instance has made.
func secretKey(n redisconn.Name) string { return n.Key("secret") }

// marksKey counts the marks that were given out.
func marksKey(n redisconn.Name) string { return n.Key("instances") }

// Secret returns the secret of all instances of this name. The first that asks makes it.
func (r *Store) Secret(ctx context.Context) (secret []byte, err error) {
	fresh := NewSecret()
	var text string
	secretKey := secretKey(r.name)
	err = r.link.To(secretKey).Do(ctx, func(ctx context.Context, c redisconn.Commands) error {
		if err := c.SetNX(ctx, secretKey, hex.EncodeToString(fresh), 0).Err(); err != nil {
			return err
		}
		text, err = c.Get(ctx, secretKey).Result()
		return err
	}, storeFault)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", secretKey, err)
	}
	if secret, err = hex.DecodeString(text); err != nil || len(secret) < 16 {
		return nil, fmt.Errorf("read %s: it holds no secret of at least 16 bytes in hexadecimal", secretKey)
	}
	return secret, nil
}

// Mark returns an Options.Mark that none of the last thousand instances of this name got.
func (r *Store) Mark(ctx context.Context) (mark int64, err error) {
	marksKey := marksKey(r.name)
	err = r.link.To(marksKey).Do(ctx, func(ctx context.Context, c redisconn.Commands) error {
		mark, err = c.Incr(ctx, marksKey).Result()
		return err
	}, storeFault)
	if err != nil {
		return 0, fmt.Errorf("count %s: %w", marksKey, err)
	}
	return 1 + mark%(numMarks-1), nil
}
