package namespace

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/redis/go-redis/v9"

	"sluice/stockgate/redisconn"
)

// ErrClaimed is the cause where gateways with another secret have claimed the name.
var ErrClaimed = errors.New("belongs to another shop")

// notHeld is an error of Hold. redisconn.Unsent holds of it: what the caller wanted to do next is not done.
type notHeld struct{ error }

func (e notHeld) Unwrap() error        { return e.error }
func (e notHeld) Is(target error) bool { return target == redisconn.ErrUnsent }

// Claim is how a name is kept from two shops that chose the same one. The gateways of a shop share a secret; the first
// of them writes its fingerprint under the name, where it stays until an operator deletes it. It is safe for concurrent
// use.
type Claim struct {
	Name   Name
	Link   *redisconn.Client // which stays the caller's
	Secret []byte            // nil = the name is not claimed
	Looks  bool              // for a program that claims nothing: a name that is not claimed is free

	held atomic.Bool
}

// Hold returns nil once the name is claimed with Secret, and ErrClaimed where it is claimed with another one.
func (c *Claim) Hold(ctx context.Context) error {
	if c.held.Load() || len(c.Secret) == 0 {
		return nil
	}
	key, ours, found := c.Name.ClaimKey(), fingerprint(c.Secret), ""
	err := c.Link.To(key).Do(ctx, func(ctx context.Context, r *redis.Client) (err error) {
		if !c.Looks {
			if err := r.SetNX(ctx, key, ours, 0).Err(); err != nil {
				return err
			}
		}
		found, err = r.Get(ctx, key).Result()
		return err
	}, redisconn.Unanswered)
	switch {
	case errors.Is(err, redis.Nil):
		return nil // the next call looks again
	case err != nil:
		return notHeld{fmt.Errorf("read %s: %w", key, err)}
	case found != ours:
		return notHeld{fmt.Errorf("%q %w: %s in Redis was written with another stock.reserve.secret_file; write another "+
			"name, or use that file; only if this shop has a new secret: redis-cli DEL %s", string(c.Name), ErrClaimed, key,
			key)}
	}
	c.held.Store(true)
	return nil
}

// Forget has the next Hold look again, since Redis may have lost the claim.
func (c *Claim) Forget() { c.held.Store(false) }

// fingerprint tells secrets apart, and tells nothing of them.
func fingerprint(secret []byte) string {
	mac := hmac.New(sha256.New, secret)
	mac.Write([]byte("sluice: claim of a name"))
	return hex.EncodeToString(mac.Sum(nil)[:16])
}
