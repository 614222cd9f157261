package fleet

import (
	"cmp"
	"context"
	_ "embed" // for the script
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"sluice/stockgate/redisconn"
)

//go:embed lua/beat.lua
var beatScript string

// do makes one round trip to the server that has the keys of the fleet.
func (f *Fleet) do(ctx context.Context, what string, ask func(context.Context, redisconn.Commands) error) error {
	err := f.link.To(f.changes).Do(ctx, ask, redisconn.Unanswered)
	if redis.HasErrorPrefix(err, "FULL") {
		err = errFull
	}
	if err != nil {
		return fmt.Errorf("%s the fleet %q: %w", what, f.options.Name, err)
	}
	return nil
}

// heard is what a heartbeat tells.
type heard struct {
	err     error // nothing was heard
	members members
	version string   // of the changes; "" = there are none
	asks    string   // version of the tasks
	changes []Change // by number, where the version is another than what is known
	tasks   []Change // likewise
}

// sendHeartbeat makes the round trip of one heartbeat.
func (f *Fleet) sendHeartbeat(ctx context.Context) (h heard, err error) {
	f.mu.Lock()
	known, asks, says := f.known, f.asks, f.says
	f.mu.Unlock()
	prune := 0
	if f.roll.beats++; f.roll.beats%pruneBeats == 1 {
		prune = 1
	}
	err = f.do(ctx, "beat in", func(ctx context.Context, c redisconn.Commands) error {
		reply, err := c.Eval(ctx, beatScript, []string{f.members, f.instances, f.changes, f.tasks}, f.id,
			alive.Milliseconds(), says, known, asks, listedFor.Milliseconds(), maxInstances, prune).Slice()
		if err == nil {
			h, err = f.read(reply, time.Now())
		}
		return err
	})
	return h, err
}

// leave takes this instance off the lists; when that fails it expires.
func (f *Fleet) leave() {
	_ = f.do(context.Background(), "leave", func(ctx context.Context, c redisconn.Commands) error {
		pipe := c.Pipeline()
		pipe.ZRem(ctx, f.members, f.id)
		pipe.HDel(ctx, f.instances, f.id)
		_, err := pipe.Exec(ctx)
		return err
	})
}

// read understands the reply to a heartbeat, of about now.
func (f *Fleet) read(reply []any, now time.Time) (h heard, err error) {
	if len(reply) != 8 {
		return h, fmt.Errorf("a reply of %d parts, not 8", len(reply))
	}
	if h.members, err = readMembers(reply[:4]); err != nil {
		return h, err
	}
	version, ok := reply[4].(string)
	asks, also := reply[5].(string)
	if !ok || !also {
		return h, fmt.Errorf("no version: %v", reply[4:6])
	}
	h.version, h.asks = version, asks
	clock := h.members.micros / 1000
	if h.changes, err = f.list(reply[6], clock, now); err != nil {
		return h, err
	}
	tasks, err := f.list(reply[7], clock, now)
	for _, t := range tasks {
		if t.Until.After(now) {
			h.tasks = append(h.tasks, t)
		}
	}
	return h, err
}

// readMembers understands who lives.
func readMembers(reply []any) (found members, err error) {
	seconds, err1 := whole(reply[0])
	micros, err2 := whole(reply[1])
	found = members{micros: seconds*1_000_000 + micros, beats: map[string]int64{}}
	var err3, err4 error
	if reply[2] != nil {
		found.before, err3 = whole(reply[2])
	}
	all, ok := reply[3].([]any)
	if !ok || len(all)%2 != 0 {
		err4 = errors.New("no list of instances and heartbeats")
	}
	for i := 0; i+1 < len(all); i += 2 {
		id, ok := all[i].(string)
		at, err := whole(all[i+1])
		if !ok || err != nil {
			return members{}, fmt.Errorf("instance %v: no name and heartbeat: %w", all[i], err)
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

// Instance is one that said how it is.
type Instance struct {
	ID      string
	Age     time.Duration // of the summary
	Summary string
}

// Instances are those that have told how they are, by their names.
func (f *Fleet) Instances(ctx context.Context) (all []Instance, err error) {
	err = f.do(ctx, "list", func(ctx context.Context, c redisconn.Commands) error {
		pipe := c.Pipeline()
		clock, found := pipe.Time(ctx), pipe.HGetAll(ctx, f.instances)
		if _, err := pipe.Exec(ctx); err != nil {
			return err
		}
		all = all[:0]
		for id, raw := range found.Val() {
			at, summary, _ := strings.Cut(raw, " ")
			ms, err := strconv.ParseInt(at, 10, 64)
			if age := clock.Val().Sub(time.UnixMilli(ms)); err == nil && age < listedFor {
				all = append(all, Instance{ID: id, Age: max(age, 0), Summary: summary})
			}
		}
		return nil
	})
	slices.SortStableFunc(all, func(x, y Instance) int { return cmp.Compare(x.ID, y.ID) })
	return all, err
}
