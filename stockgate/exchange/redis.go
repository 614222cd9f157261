package exchange

import (
	"cmp"
	"context"
	_ "embed" // for the scripts
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
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
	err := e.link.To(e.changes).Do(ctx, ask, func(err error) error { return err })
	if redis.HasErrorPrefix(err, "FULL") {
		err = ErrFull
	}
	if err != nil {
		return fmt.Errorf("%s the fleet %q: %w", what, e.options.Fleet, err)
	}
	return nil
}

// heard is what a beat tells.
type heard struct {
	version int64
	changes []Change // by number
	tasks   []Task   // likewise
}

func (e *Exchange) beat(ctx context.Context) (h heard, err error) {
	prune := "0"
	if e.beats++; e.beats%pruneBeats == 1 {
		prune = "1"
	}
	summary := e.options.Summary()
	if len(summary) > MaxText {
		summary = "{}"
	}
	err = e.do(ctx, "beat in", func(ctx context.Context, c *redis.Client) error {
		reply, err := c.Eval(ctx, beatScript, []string{e.instances, e.changes}, e.id, summary,
			strconv.FormatInt(e.known, 10), Listed.Milliseconds(), maxInstances, prune).Slice()
		if err == nil {
			h, err = read(reply, time.Now())
		}
		return err
	})
	return h, err
}

// read understands the reply of a beat, of about now.
func read(reply []any, now time.Time) (h heard, err error) {
	if len(reply) != 2 && len(reply) != 3 {
		return h, fmt.Errorf("a reply of %d parts, not 2 or 3", len(reply))
	}
	clock, err1 := number(reply[0])
	version, err2 := number(reply[1])
	if err := errors.Join(err1, err2); err != nil || len(reply) == 2 {
		return heard{version: version}, err
	}
	h.version = version
	all, ok := reply[2].([]any)
	if !ok || len(all)%2 != 0 {
		return h, errors.New("no list of changes")
	}
	for i := 0; i < len(all); i += 2 {
		name, ok := all[i].(string)
		raw, also := all[i+1].(string)
		if !ok || !also || name == "#version" {
			continue
		}
		change, err := parse(name, raw, clock, now)
		if err != nil {
			return h, err
		}
		if !strings.HasPrefix(name, "task ") {
			h.changes = append(h.changes, change)
		} else if change.Until.After(now) {
			h.tasks = append(h.tasks, Task{change.Number, change.Text})
		}
	}
	slices.SortFunc(h.changes, func(x, y Change) int { return cmp.Compare(x.Number, y.Number) })
	slices.SortFunc(h.tasks, func(x, y Task) int { return cmp.Compare(x.Number, y.Number) })
	return h, nil
}

// parse reads one change, which Redis had when its clock said so many milliseconds.
func parse(name, raw string, clock int64, now time.Time) (Change, error) {
	first, rest, _ := strings.Cut(raw, " ")
	second, rest, _ := strings.Cut(rest, " ")
	_, text, _ := strings.Cut(rest, " ")
	id, err1 := strconv.ParseInt(first, 10, 64)
	ends, err2 := strconv.ParseInt(second, 10, 64)
	if err := errors.Join(err1, err2); err != nil {
		return Change{}, fmt.Errorf("change %.80q: %w", name, err)
	}
	return Change{Name: name, Number: id, Text: text, raw: raw,
		Until: now.Add(time.Duration(ends-clock) * time.Millisecond)}, nil
}

func number(v any) (int64, error) {
	text, ok := v.(string)
	if !ok {
		return 0, fmt.Errorf("%v is no number", v)
	}
	return strconv.ParseInt(text, 10, 64)
}

func (e *Exchange) put(ctx context.Context, name, text string, lasts, keep time.Duration, most int,
) (id int64, err error) {
	err = e.do(ctx, "change", func(ctx context.Context, c *redis.Client) error {
		reply, err := c.Eval(ctx, putScript, []string{e.changes}, name, text, lasts.Milliseconds(), most,
			keep.Milliseconds()).Text()
		if err == nil {
			id, err = strconv.ParseInt(reply, 10, 64)
		}
		return err
	})
	return id, err
}

// Remove ends a change on all instances. It reports whether this call has ended it: no other call does then.
func (e *Exchange) Remove(ctx context.Context, name string, id int64) (removed bool, err error) {
	err = e.do(ctx, "change", func(ctx context.Context, c *redis.Client) error {
		n, err := c.Eval(ctx, removeScript, []string{e.changes}, name, strconv.FormatInt(id, 10)).Int()
		removed = n == 1
		return err
	})
	if removed {
		e.awaken()
	}
	return removed, err
}

// restoredFor is how long changes are kept that were put back: longer than the longest one holds.
const restoredFor = 26 * time.Hour

// restore puts back what this instance knows.
func (e *Exchange) restore(ctx context.Context) error {
	args := []any{strconv.FormatInt(e.known, 10), restoredFor.Milliseconds()}
	for _, c := range e.holds {
		args = append(args, c.Name, c.raw)
	}
	return e.do(ctx, "restore", func(ctx context.Context, c *redis.Client) error {
		return c.Eval(ctx, restoreScript, []string{e.changes}, args...).Err()
	})
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
			if age := clock.Val().Sub(time.UnixMilli(ms)); err == nil && age < Listed {
				all = append(all, Instance{ID: id, Age: max(age, 0), Summary: summary})
			}
		}
		return nil
	})
	slices.SortFunc(all, func(x, y Instance) int { return cmp.Compare(x.ID, y.ID) })
	return all, err
}

// leave takes this instance off the list; when that fails its entry expires.
func (e *Exchange) leave() {
	_ = e.do(context.Background(), "leave", func(ctx context.Context, c *redis.Client) error {
		return c.HDel(ctx, e.instances, e.id).Err()
	})
}

func (e *Exchange) answersOf(task int64) string {
	return fmt.Sprintf("sluice:fleet:{%s}:answers:%d", e.options.Fleet, task)
}

func (e *Exchange) answer(ctx context.Context, task int64, text string) error {
	if len(text) > MaxText {
		text = text[:MaxText]
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
	slices.SortFunc(all, func(x, y Answer) int { return cmp.Compare(x.Instance, y.Instance) })
	return all, err
}
