package fleet

import (
	"cmp"
	"context"
	"crypto/rand"
	_ "embed" // for the scripts
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"sluice/stockgate/redisconn"
)

var (
	//go:embed lua/put.lua
	putScript string
	//go:embed lua/remove.lua
	removeScript string
	//go:embed lua/restore.lua
	restoreScript string
)

const (
	maxChanges = 100 // that hold at a time
	maxKept    = 500 // of the list, with those that have ended
	// restoredFor is how long changes are kept that were put back: longer than the longest one holds.
	restoredFor = 26 * time.Hour
)

// Change is one thing that an operator has changed on all instances.
type Change struct {
	Name    string
	Number  int64
	Text    string    // "" of one that was removed
	Until   time.Time // on the clock of this process
	Removed bool      // before its end
	Signed  bool      // with the secret of the fleet; false where it has none

	gone time.Time // when Redis may forget it
	raw  string    // as Redis has it
}

// learner is what an instance knows of the list of changes. It is of one goroutine.
type learner struct {
	did    int64                // number of the last task
	nonces map[string]time.Time // the random texts of signed tasks that were done, until these are over
	holds  []Change
	lost   bool // Redis had lost some of them
	over   bool // of those that the heartbeat before lacked, none could be put back
	met    bool // a heartbeat was answered
	turns  int
}

// handle does what a heartbeat has told.
func (f *Fleet) handle(ctx context.Context, h heard) {
	if h.err != nil || ctx.Err() != nil {
		return
	}
	first := !f.met
	f.met = true
	f.mu.Lock()
	known := f.known
	f.mu.Unlock()
	f.turns++
	if first || h.version != known {
		f.learn(ctx, h)
	} else if f.over = false; f.turns%repeatBeats == 0 {
		f.options.Changed(slices.Clone(f.holds), true)
	}
	f.mu.Lock()
	f.asks = h.asks
	f.mu.Unlock()
	maps.DeleteFunc(f.nonces, func(_ string, until time.Time) bool { return time.Since(until) > 0 })
	for _, task := range h.tasks {
		switch {
		case ctx.Err() != nil:
			return
		case task.Number <= f.did:
			continue
		}
		f.did = task.Number
		nonce, text, _ := strings.Cut(task.Text, " ")
		_, again := f.nonces[nonce] // under another number, which is not signed
		if task.Signed {
			f.nonces[nonce] = task.Until
		}
		if first || again { // first: it was given before this instance ran
			continue
		}
		if err := f.answer(ctx, task.Number, f.options.Do(text)); err != nil {
			f.options.Log.Warn("an answer could not be told to the fleet", "err", err)
		}
	}
}

// learn takes the list over, or puts back first what it lacks: the next heartbeat tells the whole list then. What is
// over by Redis' clock is not put back.
func (f *Fleet) learn(ctx context.Context, h heard) {
	lost := lacking(h.changes, f.holds, time.Now())
	if len(lost) > 0 {
		f.lost = true
		n, err := f.restore(ctx, lost)
		if err != nil {
			f.over = false
			f.options.Log.Warn("changes of the fleet could not be put back into Redis; trying again", "err", err)
			return
		}
		if n > 0 {
			f.options.Log.Warn("Redis had lost changes of the fleet; they were put back", "changes", n)
		}
		if n > 0 || !f.over { // if it was none, another instance has put them back since, or they are over
			f.over = n == 0
			f.awaken()
			return
		}
	}
	f.mu.Lock()
	f.known = h.version
	f.mu.Unlock()
	f.holds = h.changes
	f.options.Changed(slices.Clone(h.changes), f.lost)
	f.lost, f.over = false, false
}

// lacking are those of known that list does not have, though their time has not passed at now.
func lacking(list, known []Change, now time.Time) (lost []Change) {
	for _, k := range known {
		at := slices.IndexFunc(list, func(c Change) bool { return c.Name == k.Name })
		if k.gone.After(now) && (at < 0 || list[at].Number < k.Number ||
			list[at].Number == k.Number && k.Removed && !list[at].Removed) {
			lost = append(lost, k)
		}
	}
	return lost
}

// list reads the changes of a hash. Those that cannot be read, or that the fleet has not signed, are left out.
func (f *Fleet) list(v any, clock int64, now time.Time) (changes []Change, err error) {
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
		change, err := f.parse(name, raw, clock, now)
		switch {
		case f.Signs() && (err != nil || !change.Signed && !change.Removed):
			f.options.Log.Warn("an entry of the fleet in Redis has not the signature of stock.reserve.secret_file; it is "+
				"ignored", "entry", fmt.Sprintf("%.80q", name))
		case err != nil:
			f.options.Log.Warn("an entry of the fleet in Redis cannot be read; it is ignored", "err", err)
		default:
			changes = append(changes, change)
		}
	}
	slices.SortStableFunc(changes, func(x, y Change) int { return cmp.Compare(x.Number, y.Number) })
	return changes, nil
}

// parse reads one change, which Redis had when its clock said so many milliseconds.
func (f *Fleet) parse(name, raw string, clock int64, now time.Time) (Change, error) {
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
	c := Change{Name: name, Number: n[0], Until: at(n[1]), Removed: parts[3] == "off", gone: at(n[2]), raw: raw}
	if c.Removed {
		return c, nil
	}
	signature, text, ok := strings.Cut(parts[4], " ")
	if !ok {
		return Change{}, fmt.Errorf("change %.80q has no signature", name)
	}
	if f.isTask(name, n[0]) {
		name = ""
	}
	c.Text, c.Signed = text, f.Signs() && f.signature(name, text, n[1]) == signature
	return c, nil
}

// Put makes a change on all instances, in place of one of the same name. It is kept for a while after its end where an
// instance has to end it. After an error for which Unmade is false it may be made.
func (f *Fleet) Put(ctx context.Context, name, text string, lasts, keep time.Duration) (Change, error) {
	if len(name)+len(text) > maxText {
		return Change{}, fmt.Errorf("change %.80q: %d bytes, more than %d", name, len(name)+len(text), maxText)
	}
	number, err := f.put(ctx, f.changes, name, text, lasts, keep)
	if err != nil {
		return Change{}, err
	}
	f.awaken()
	return Change{Name: name, Number: number, Text: text, Until: time.Now().Add(lasts)}, nil
}

// put adds a change to the list at key, or a task without a name. A text that is random begins a task: so each is done
// once.
func (f *Fleet) put(ctx context.Context, key, name, text string, lasts, keep time.Duration) (id int64, err error) {
	most, kept := maxChanges, maxKept
	if name == "" {
		most, kept, text = maxTasks, maxTasks, rand.Text()+" "+text
	}
	err = f.do(ctx, "change", func(ctx context.Context, c redisconn.Commands) error {
		clock, err := c.Time(ctx).Result()
		if err != nil {
			return fmt.Errorf("%w: %w", redisconn.ErrUnsent, err)
		}
		ends := clock.Add(lasts).UnixMilli()
		reply, err := c.Eval(ctx, putScript, []string{key}, name, f.signature(name, text, ends)+" "+text, ends,
			keep.Milliseconds(), most, kept, rand.Text()).Text()
		if err == nil {
			id, err = strconv.ParseInt(reply, 10, 64)
		}
		return err
	})
	return id, err
}

// errFull is the cause when there are as many changes as there may be.
var errFull = errors.New("there are as many changes of the fleet as there may be; undo some")

// ErrReplaced is the cause where another change has taken the place of one.
var ErrReplaced = errors.New("another one has taken its place")

// Unmade reports whether an error of Put or Remove tells that nothing was changed; false = that is not known.
func Unmade(err error) bool { return errors.Is(err, errFull) || redisconn.Unsent(err) }

// Remove ends a change on all instances before its time. It may be repeated. Where another change of the same name
// holds, it is ErrReplaced.
func (f *Fleet) Remove(ctx context.Context, name string, id int64) error {
	found := 0
	err := f.do(ctx, "change", func(ctx context.Context, c redisconn.Commands) (err error) {
		found, err = c.Eval(ctx, removeScript, []string{f.changes}, name, strconv.FormatInt(id, 10), rand.Text()).Int()
		return err
	})
	switch {
	case err != nil:
		return err
	case found == 2:
		return ErrReplaced
	}
	f.awaken()
	return nil
}

// restore puts changes back that Redis has lost, and tells how many: others may have done it before.
func (f *Fleet) restore(ctx context.Context, lost []Change) (n int, err error) {
	args := []any{restoredFor.Milliseconds(), rand.Text()}
	for _, c := range lost {
		args = append(args, c.Name, c.raw)
	}
	err = f.do(ctx, "restore", func(ctx context.Context, c redisconn.Commands) (err error) {
		n, err = c.Eval(ctx, restoreScript, []string{f.changes}, args...).Int()
		return err
	})
	return n, err
}
