package fleet

import (
	"context"
	_ "embed" // for the script
	"errors"
	"fmt"
	"strconv"

	"github.com/redis/go-redis/v9"
)

//go:embed lua/beat.lua
var script string

// sendHeartbeat makes the round trip of one beat.
func (m *Member) sendHeartbeat(ctx context.Context) (found members, err error) {
	err = m.link.Do(ctx, func(ctx context.Context, c *redis.Client) error {
		reply, err := c.Eval(ctx, script, []string{m.key}, m.id, alive.Milliseconds()).Slice()
		if err == nil {
			found, err = read(reply)
		}
		if err != nil {
			return fmt.Errorf("beat in %q: %w", m.key, err)
		}
		return nil
	}, nil)
	return found, err
}

// deregister takes this instance off the list; when that fails it expires.
func (m *Member) deregister() {
	_ = m.link.Do(context.Background(), func(ctx context.Context, c *redis.Client) error {
		return c.ZRem(ctx, m.key, m.id).Err()
	}, nil)
}

// read understands the script's reply.
func read(reply []any) (found members, err error) {
	if len(reply) != 4 {
		return members{}, fmt.Errorf("a reply of %d parts, not 4", len(reply))
	}
	seconds, err1 := whole(reply[0])
	micros, err2 := whole(reply[1])
	found = members{micros: seconds*1_000_000 + micros, beats: map[string]int64{}}
	var err3, err4 error
	if reply[2] != nil {
		found.before, err3 = whole(reply[2])
	}
	all, ok := reply[3].([]any)
	if !ok || len(all)%2 != 0 {
		err4 = errors.New("no list of instances and beats")
	}
	for i := 0; i+1 < len(all); i += 2 {
		id, ok := all[i].(string)
		at, err := whole(all[i+1])
		if !ok || err != nil {
			return members{}, fmt.Errorf("instance %v: no name and beat: %w", all[i], err)
		}
		found.beats[id] = at
	}
	return found, errors.Join(err1, err2, err3, err4)
}

// whole reads a number that Redis says as text, now and then with an exponent.
func whole(v any) (int64, error) {
	text, ok := v.(string)
	if !ok {
		return 0, fmt.Errorf("%v is no number", v)
	}
	n, err := strconv.ParseFloat(text, 64)
	if err != nil || !(n >= 0 && n < 1<<53) {
		return 0, fmt.Errorf("%q is no number of a clock", text)
	}
	return int64(n), nil
}
