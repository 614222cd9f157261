package redisconn

import (
	"context"
	"errors"
	"strings"

	"github.com/redis/go-redis/v9"
)

// ErrMoving is the cause when a key went to another server each time that it was being read.
var ErrMoving = errors.New("the key moves from server to server while it is read")

const maxScans = 5

// Scan reads pages of a key until the cursor is 0, and gives each to take, until that returns false. A cursor means
// something on one server alone: where another one answers, because slots have moved or Redis has failed over, Scan
// begins again, and take gets all from the start, with the cursor 0 at first. Options.Identify must tell a server that
// was restarted from the one before.
func (w Route) Scan(ctx context.Context, read func(ctx context.Context, c Commands, cursor uint64) *redis.ScanCmd,
	take func(cursor uint64, page []string) (more bool, err error), lost lostFunc) error {
	for range maxScans {
		if whole, err := w.scan(ctx, read, take, lost); whole || err != nil {
			return err
		}
	}
	return ErrMoving
}

// scan reports false when the key went to another server.
func (w Route) scan(ctx context.Context, read func(context.Context, Commands, uint64) *redis.ScanCmd,
	take func(uint64, []string) (bool, error), lost lostFunc) (whole bool, err error) {
	var first Commands
	for cursor, more := uint64(0), true; more; {
		var page []string
		at, moved := cursor, false
		err = w.Do(ctx, func(ctx context.Context, c Commands) error {
			some, next, err := read(ctx, c, at).Result()
			if err == nil { // a server that has handed over the key has only said so
				moved, first, page, cursor = at != 0 && c != first, c, some, next
			}
			return err
		}, lost)
		if moved || err != nil {
			return false, err
		}
		if more, err = take(at, page); err != nil {
			return false, err
		}
		more = more && cursor != 0
	}
	return true, nil
}

// RunID names the process that a connection has reached; "" where Redis does not tell: INFO may be denied, or mean
// nothing in a service that hides its servers.
func RunID(ctx context.Context, c redis.Cmdable) (string, error) {
	text, err := c.Info(ctx, "server").Result()
	if err != nil && !redis.HasErrorPrefix(err, "NOPERM") && !redis.HasErrorPrefix(err, "ERR unknown command") {
		return "", err // it may tell the next time
	}
	for line := range strings.Lines(text) {
		if id, ok := strings.CutPrefix(strings.TrimSpace(line), "run_id:"); ok && id != "" {
			return id, nil
		}
	}
	return "", nil
}
