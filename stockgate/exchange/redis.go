package exchange

import (
	"cmp"
	"context"
	"crypto/rand"
	_ "embed" // for the scripts
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"sluice/internal/sorted"
	"sluice/stockgate/redisconn"
)

var (
	//go:embed lua/beat.lua
	beatScript string
	//go:embed lua/put.lua
	putScript string
	//go:embed lua/remove.lua
	removeScript string
	//go:embed lua/restore.lua
	restoreScript string
)

// ErrFull is the cause when there are as many changes as there may be.
var ErrFull = errors.New("there are as many changes of the fleet as there may be; undo some")

// do makes one round trip to the server that has the keys of the fleet.
func (e *Exchange) do(ctx context.Context, what string, ask func(context.Context, *redis.Client) error) error {
	err := e.link.To(e.changes).Do(ctx, ask, nil)
	if redis.HasErrorPrefix(err, "FULL") {
		err = ErrFull
	}
	if err != nil {
		return fmt.Errorf("%s the fleet %q: %w", what, e.options.Name, err)
	}
	return nil
}

// Unmade reports whether an error of Put or Remove tells that nothing was changed; false = that is not known.
func Unmade(err error) bool { return errors.Is(err, ErrFull) || redisconn.Unsent(err) }

// heard is what a beat tells.
type heard struct {
	version string   // of the changes; "" = there are none
	asks    string   // version of the tasks
	changes []Change // by number, where the version is another than what is known
	tasks   []Task   // likewise
}

func (e *Exchange) beat(ctx context.Context) (h heard, err error) {
	prune := "0"
	if e.beats++; e.beats%pruneBeats == 1 {
		prune = "1"
	}
	summary := e.options.Summary()
	if len(summary) > maxText {
		summary = "{}"
	}
	err = e.do(ctx, "beat in", func(ctx context.Context, c *redis.Client) error {
		reply, err := c.Eval(ctx, beatScript, []string{e.instances, e.changes, e.tasks}, e.id, summary, e.known, e.asks,
			listedFor.Milliseconds(), maxInstances, prune).Slice()
		if err == nil {
			h, err = read(reply, time.Now())
		}
		return err
	})
	return h, err
}

// read understands the reply of a beat, of about now.
func read(reply []any, now time.Time) (h heard, err error) {
	if len(reply) != 5 {
		return h, fmt.Errorf("a reply of %d parts, not 5", len(reply))
	}
	clock, err := number(reply[0])
	version, ok := reply[1].(string)
	asks, also := reply[2].(string)
	if err != nil || !ok || !also {
		return h, fmt.Errorf("no clock or version: %v", reply[:3])
	}
	h.version, h.asks = version, asks
	h.changes, err = list(reply[3], clock, now)
	if err != nil {
		return h, err
	}
	tasks, err := list(reply[4], clock, now)
	for _, t := range tasks {
		if t.Until.After(now) {
			h.tasks = append(h.tasks, Task{t.Number, t.Text})
		}
	}
	return h, err
}

// list reads all changes of a hash, or none.
func list(v any, clock int64, now time.Time) (changes []Change, err error) {
	if v == nil {
		return nil, nil
	}
	all, ok := v.([]any)
	if !ok || len(all)%2 != 0 {
		return nil, errors.New("no list of changes")
	}
	for i := 0; i < len(all); i += 2 {
		name, ok := all[i].(string)
		raw, also := all[i+1].(string)
		if !ok || !also || name == "#version" {
			continue
		}
		change, err := parse(name, raw, clock, now)
		if err != nil {
			return nil, err
		}
		changes = append(changes, change)
	}
	sorted.By(changes, func(x, y Change) int { return cmp.Compare(x.Number, y.Number) })
	return changes, nil
}

// parse reads one change, which Redis had when its clock said so many milliseconds.
func parse(name, raw string, clock int64, now time.Time) (Change, error) {
	parts := strings.SplitN(raw, " ", 5)
	if len(parts) != 5 || parts[3] != "on" && parts[3] != "off" {
		return Change{}, fmt.Errorf("change %.80q cannot be read", name)
	}
	var n [3]int64
	for i := range n {
		var err error
		if n[i], err = strconv.ParseInt(parts[i], 10, 64); err != nil {
			return Change{}, fmt.Errorf("change %.80q: %w", name, err)
		}
	}
	at := func(ms int64) time.Time { return now.Add(time.Duration(ms-clock) * time.Millisecond) }
	return Change{Name: name, Number: n[0], Text: parts[4], Until: at(n[1]), Removed: parts[3] == "off", gone: at(n[2]),
		raw: raw}, nil
}

func number(v any) (int64, error) {
	text, ok := v.(string)
	if !ok {
		return 0, fmt.Errorf("%v is no number", v)
	}
	return strconv.ParseInt(text, 10, 64)
}

// put adds a change to the list at key, or a task without a name.
func (e *Exchange) put(ctx context.Context, key, name, text string, lasts, keep time.Duration) (id int64, err error) {
	most, kept := maxChanges, maxKept
	if name == "" {
		most, kept = maxTasks, maxTasks
	}
	err = e.do(ctx, "change", func(ctx context.Context, c *redis.Client) error {
		reply, err := c.Eval(ctx, putScript, []string{key}, name, text, lasts.Milliseconds(), keep.Milliseconds(), most,
			kept, rand.Text()).Text()
		if err == nil {
			id, err = strconv.ParseInt(reply, 10, 64)
		}
		return err
	})
	return id, err
}

// ErrReplaced is the cause where another change has taken the place of one.
var ErrReplaced = errors.New("another one has taken its place")

// Remove ends a change on all instances before its time. It may be repeated. Where another change of the same name
// holds, it is ErrReplaced.
func (e *Exchange) Remove(ctx context.Context, name string, id int64) error {
	found := 0
	err := e.do(ctx, "change", func(ctx context.Context, c *redis.Client) (err error) {
		found, err = c.Eval(ctx, removeScript, []string{e.changes}, name, strconv.FormatInt(id, 10), rand.Text()).Int()
		return err
	})
	switch {
	case err != nil:
		return err
	case found == 2:
		return ErrReplaced
	}
	e.awaken()
	return nil
}

// restoredFor is how long changes are kept that were put back: longer than the longest one holds.
const restoredFor = 26 * time.Hour

// restore puts changes back that Redis has lost, and tells how many: others may have done it before.
func (e *Exchange) restore(ctx context.Context, lost []Change) (n int, err error) {
	args := []any{restoredFor.Milliseconds(), rand.Text()}
	for _, c := range lost {
		args = append(args, c.Name, c.raw)
	}
	err = e.do(ctx, "restore", func(ctx context.Context, c *redis.Client) (err error) {
		n, err = c.Eval(ctx, restoreScript, []string{e.changes}, args...).Int()
		return err
	})
	return n, err
}

// Instances are those that have told how they are, by their names.
func (e *Exchange) Instances(ctx context.Context) (all []Instance, err error) {
	err = e.do(ctx, "list", func(ctx context.Context, c *redis.Client) error {
		pipe := c.Pipeline()
		clock, found := pipe.Time(ctx), pipe.HGetAll(ctx, e.instances)
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
	sorted.By(all, func(x, y Instance) int { return cmp.Compare(x.ID, y.ID) })
	return all, err
}

// leave takes this instance off the list; when that fails its entry expires.
func (e *Exchange) leave() {
	_ = e.do(context.Background(), "leave", func(ctx context.Context, c *redis.Client) error {
		return c.HDel(ctx, e.instances, e.id).Err()
	})
}

func (e *Exchange) answersOf(task int64) string {
	return exchanged(e.options.Name, fmt.Sprintf("answers:%d", task))
}

func (e *Exchange) answer(ctx context.Context, task int64, text string) error {
	if len(text) > maxText {
		text = text[:maxText]
	}
	return e.do(ctx, "answer", func(ctx context.Context, c *redis.Client) error {
		pipe := c.Pipeline()
		pipe.HSet(ctx, e.answersOf(task), e.id, text)
		pipe.PExpire(ctx, e.answersOf(task), 2*taskTime)
		_, err := pipe.Exec(ctx)
		return err
	})
}

func (e *Exchange) answers(ctx context.Context, task int64) (all []Answer, err error) {
	err = e.do(ctx, "ask", func(ctx context.Context, c *redis.Client) error {
		found, err := c.HGetAll(ctx, e.answersOf(task)).Result()
		all = all[:0]
		for id, text := range found {
			all = append(all, Answer{id, text})
		}
		return err
	})
	sorted.By(all, func(x, y Answer) int { return cmp.Compare(x.Instance, y.Instance) })
	return all, err
}
