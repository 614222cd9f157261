// Package exchange is what the instances of a fleet tell each other through Redis: once a second a summary of each, and
// what operators have changed for all of them.
//
// A change has a name and an end, on Redis' clock, and a number that rises. Each instance learns of it with its next
// beat; one that starts late learns of all that hold. While Redis is away the changes that are known hold until their
// ends. One that is removed stays in the list, marked as removed, for as long as it would have stayed. So a change that
// an instance knows, whose time has not passed, and that the list does not have, was lost: it is put back. A task is
// done once by each instance that runs when it is given, and answered.
//
// What is kept is bounded: so many instances, changes, tasks and bytes of each. No request waits for it.
//
// It does not know what is changed, and what a summary says.
package exchange

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"sluice/stockgate/namespace"
	"sluice/stockgate/redisconn"
)

const (
	every = time.Second
	// listedFor is how long an instance is listed after its last beat.
	listedFor = 10 * time.Second

	maxInstances = 1000
	maxChanges   = 100 // that hold at a time
	maxKept      = 500 // of the list, with those that have ended
	maxTasks     = 32  // within taskTime
	pruneBeats   = 60  // beats from one removal of instances that are gone to the next
	repeatBeats  = 60  // beats from one repetition of the list to the next

	// maxText is how many bytes a summary, a change, a task or an answer may have.
	maxText = 4 << 10

	taskTime = 30 * time.Second // who learns of a task later does not do it
)

// Change is one thing that an operator has changed on all instances.
type Change struct {
	Name    string
	Number  int64
	Text    string    // "" of one that was removed
	Until   time.Time // on the clock of this process
	Removed bool      // before its end

	gone time.Time // when Redis may forget it
	raw  string    // as Redis has it
}

// Task is to be done once.
type Task struct {
	Number int64
	Text   string
}

// Instance is one that said how it is.
type Instance struct {
	ID      string
	Age     time.Duration // of the summary
	Summary string
}

// Answer is what one instance says to a task.
type Answer struct{ Instance, Text string }

// Options say who this instance is.
type Options struct {
	Redis    redisconn.Options
	Name     namespace.Name // instances that use the same Redis and name are one fleet
	Instance string         // begins the name of this instance, which is unique anyway; may be empty

	Summary func() string // of this instance, JSON; called once a second

	// Changed hears of the list: at first, and whenever it may be another one. Changes are kept in it beyond their end.
	// again tells that what follows from the list may have been lost, and is to be done again: Redis had lost some of the
	// list, or a minute has passed.
	Changed func(all []Change, again bool)

	Do  func(text string) string // does a task, and answers it
	Log *slog.Logger             // nil = nothing
}

// Exchange is one instance of a fleet. It is safe for concurrent use.
type Exchange struct {
	options                   Options
	id                        string
	instances, changes, tasks string // keys
	link                      *redisconn.Client
	wake                      chan struct{}

	// of the goroutine alone
	known string // version of the changes
	asks  string // version of the tasks
	did   int64  // number of the last task
	holds []Change
	lost  bool // Redis had lost some of them
	over  bool // of those that the beat before lacked, none could be put back
	began bool // a beat was answered
	beats int

	redis *redisconn.Beats

	stop  context.CancelFunc
	first chan struct{} // closed when Redis was asked once
	asked func()        // closes it
	done  sync.WaitGroup
}

// New is an instance that tells nothing yet. It starts nothing.
func New(o Options) (*Exchange, error) {
	if !o.Name.Valid() || o.Summary == nil || o.Changed == nil || o.Do == nil {
		return nil, errors.New("exchange: a name of the fleet and three callbacks must be given")
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	way, err := redisconn.New(o.Redis)
	if err != nil {
		return nil, err
	}
	id := strings.TrimPrefix(o.Instance+"-"+rand.Text()[:8], "-")
	beats := redisconn.NewBeats(o.Log,
		"cannot reach Redis; what operators have changed on the fleet holds on until its end",
		"Redis is reached again; this instance hears of changes of the fleet")
	return &Exchange{options: o, id: id, link: way, wake: make(chan struct{}, 1), redis: beats,
		instances: exchanged(o.Name, "instances"), changes: exchanged(o.Name, "changes"),
		tasks: exchanged(o.Name, "tasks")}, nil
}

// ID is the name of this instance.
func (e *Exchange) ID() string { return e.id }

// exchanged is the key of a part of what instances tell each other. All parts share a slot.
func exchanged(n namespace.Name, part string) string { return n.Tagged("fleet", string(n), part) }

// Fleet is the name of the fleet.
func (e *Exchange) Fleet() string { return string(e.options.Name) }

// Start begins to tell and to hear. The caller must Close the Exchange.
func (e *Exchange) Start() {
	ctx, stop := context.WithCancel(context.Background())
	e.stop, e.first = stop, make(chan struct{})
	e.asked = sync.OnceFunc(func() { close(e.first) })
	e.done.Go(func() { e.run(ctx) })
}

// Await waits until Redis was asked once, whether it answered or not: what holds is in force then, as far as it is
// known.
func (e *Exchange) Await() { <-e.first }

// Close takes this instance off the list, as far as that can be done in one round trip, and ends what Start has
// started. The changes stay in force.
func (e *Exchange) Close() {
	if e.stop != nil {
		e.stop()
	}
	e.done.Wait()
	_ = e.link.Close()
}

// awaken has the next beat be now.
func (e *Exchange) awaken() {
	select {
	case e.wake <- struct{}{}:
	default:
	}
}

func (e *Exchange) run(ctx context.Context) {
	next := time.NewTimer(0)
	defer next.Stop()
	for {
		select {
		case <-ctx.Done():
			e.leave()
			e.asked()
			return
		case <-e.wake:
		case <-next.C:
		}
		e.turn(ctx)
		e.asked()
		next.Reset(every)
	}
}

// turn is one beat, and what follows from it.
func (e *Exchange) turn(ctx context.Context) {
	heard, err := e.beat(ctx)
	if ctx.Err() != nil {
		return
	}
	first := !e.began
	e.redis.Record(err)
	if err != nil {
		return
	}
	e.began = true
	if first || heard.version != e.known {
		e.learn(ctx, heard)
	} else if e.over = false; e.beats%repeatBeats == 0 {
		e.options.Changed(slices.Clone(e.holds), true)
	}
	e.asks = heard.asks
	for _, task := range heard.tasks {
		if task.Number <= e.did {
			continue
		}
		e.did = task.Number
		if first {
			continue // it was given before this instance ran
		}
		if err := e.answer(ctx, task.Number, e.options.Do(task.Text)); err != nil {
			e.options.Log.Warn("an answer could not be told to the fleet", "err", err)
		}
	}
}

// learn takes the list over, or puts back first what it lacks: the next beat tells the whole list then. What is over by
// Redis' clock is not put back.
func (e *Exchange) learn(ctx context.Context, heard heard) {
	lost := lacking(heard.changes, e.holds, time.Now())
	if len(lost) > 0 {
		e.lost = true
		n, err := e.restore(ctx, lost)
		if err != nil {
			e.over = false
			e.options.Log.Warn("changes of the fleet could not be put back into Redis; trying again", "err", err)
			return
		}
		if n > 0 {
			e.options.Log.Warn("Redis had lost changes of the fleet; they were put back", "changes", n)
		}
		if n > 0 || !e.over { // if it was none, another instance has put them back since, or they are over
			e.over = n == 0
			e.awaken()
			return
		}
	}
	e.known, e.holds = heard.version, heard.changes
	e.options.Changed(slices.Clone(heard.changes), e.lost)
	e.lost, e.over = false, false
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

// Put makes a change on all instances, in place of one of the same name. It is kept for a while after its end where an
// instance has to end it. After an error for which Unmade is false it may be made.
func (e *Exchange) Put(ctx context.Context, name, text string, lasts, keep time.Duration) (Change, error) {
	if len(name)+len(text) > maxText {
		return Change{}, fmt.Errorf("change %.80q: %d bytes, more than %d", name, len(name)+len(text), maxText)
	}
	number, err := e.put(ctx, e.changes, name, text, lasts, keep)
	if err != nil {
		return Change{}, err
	}
	e.awaken()
	return Change{Name: name, Number: number, Text: text, Until: time.Now().Add(lasts)}, nil
}

// Ask gives a task to all instances, and waits for their answers until ctx ends. missing are instances that were there
// and have not answered.
func (e *Exchange) Ask(ctx context.Context, text string) (answers []Answer, missing []string, err error) {
	if len(text) > maxText {
		return nil, nil, fmt.Errorf("task: %d bytes, more than %d", len(text), maxText)
	}
	all, err := e.Instances(ctx)
	if err != nil {
		return nil, nil, err
	}
	number, err := e.put(ctx, e.tasks, "", text, taskTime, 0)
	if err != nil {
		return nil, nil, err
	}
	e.awaken()
	again := time.NewTicker(100 * time.Millisecond)
	defer again.Stop()
	for {
		answers, err = e.answers(context.WithoutCancel(ctx), number)
		missing = missing[:0]
		for _, one := range all {
			if one.Age < 3*every && !slices.ContainsFunc(answers, func(a Answer) bool { return a.Instance == one.ID }) {
				missing = append(missing, one.ID)
			}
		}
		if err == nil && len(missing) == 0 {
			return answers, nil, nil
		}
		select {
		case <-ctx.Done():
			return answers, missing, err
		case <-again.C:
		}
	}
}
