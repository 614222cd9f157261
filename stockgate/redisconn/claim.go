package redisconn

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
)

// ErrClaimed is the cause where gateways with another secret, or with one at all, have claimed the name.
var ErrClaimed = errors.New("belongs to another shop")

// Claim is how a name is kept from two shops that chose the same one. The gateways of a shop share a secret; the first
// of them writes its fingerprint under the name, where it stays until an operator deletes it.
type Claim struct {
	Name   Name
	Secret []byte // nil = the name is not claimed, and must not be
	Looks  bool   // for a client that claims nothing: a name that is not claimed is free
}

// lookEvery is how often a client that only looks asks for a claim that is not there.
const lookEvery = time.Second

// Guard rejects every call of a client once the name is claimed with another secret. A server that has lost the claim
// gets it again, unless c only looks: then a claim may be made until the next look, a second later.
func (c Claim) Guard() *Guard { return c.guard(time.Now) }

func (c Claim) guard(now func() time.Time) *Guard {
	var free atomic.Pointer[time.Time] // when the name was found free
	key, ours := c.Name.ClaimKey(), fingerprint(c.Secret)
	if len(c.Secret) == 0 {
		ours = ""
	}
	return &Guard{Key: key, Check: func(ctx context.Context, r Commands) (error, bool, error) {
		if ours != "" && !c.Looks {
			if err := r.SetNX(ctx, key, ours, 0).Err(); err != nil {
				return nil, false, err
			}
		}
		began := now()
		if at := free.Load(); c.Looks && at != nil && began.Sub(*at) < lookEvery {
			return nil, false, nil
		}
		found, err := r.Get(ctx, key).Result()
		switch {
		case errors.Is(err, redis.Nil): // it is looked for again, until the gateways of this shop have claimed it
			free.Store(&began)
			return nil, ours == "", nil
		case c.Looks && redis.HasErrorPrefix(err, "NOPERM"): // this user may write nothing under the name
			return nil, true, nil
		case err != nil || found == ours:
			return nil, true, err
		}
		return c.claimed(key, ours), false, nil
	}}
}

// claimed is the error where another claim was found.
func (c Claim) claimed(key, ours string) error {
	by, only := "another stock.reserve.secret_file", "this shop has a new secret"
	if ours == "" {
		by, only = "a stock.reserve.secret_file, and this file names none", "this shop has no secret any more"
	}
	return fmt.Errorf("%q %w: %s in Redis was written with %s; write another name, or use that file; only if %s: redis-cli "+
		"DEL %s", string(c.Name), ErrClaimed, key, by, only, key)
}

// fingerprint tells secrets apart, and tells nothing of them.
func fingerprint(secret []byte) string {
	mac := hmac.New(sha256.New, secret)
	mac.Write([]byte("sluice: claim of a name"))
	return hex.EncodeToString(mac.Sum(nil)[:16])
}
