// Package batch gathers the questions of many goroutines into few calls. One call of a key is under way at a time; what
// is asked meanwhile goes with the next one. It bounds the questions of a call, and of those that wait. A caller gets
// the result of the call that carried its question.
package batch

import (
	"context"
	"errors"
	"sync"
	"time"
)

// ErrFull is the error of a question for which there is no room.
var ErrFull = errors.New("too many questions wait for a call")

// Calls gathers the questions of each key. Its fields do not change once it is asked. It is safe for concurrent use.
type Calls[In, Out any] struct {
	Call func(key string, in []In) ([]Out, error) // answers by position; each call must end by itself
	Most int                                      // questions of one call

	// MaxWaiting bounds the questions of all keys that wait for a call; 0 = the callers bound them.
	MaxWaiting int

	// FailTogether has a call that fails fail for all of its key that wait as well: no caller waits for two of them.
	FailTogether bool

	Pace Pacer // of the calls of all keys; nil = none waits

	mu      sync.Mutex
	waiting int
	byKey   map[string][]*group[In, Out] // that wait, in order; with an entry a goroutine makes the calls of the key
	idle    *sync.Cond                   // no call is under way; nil = none waits for that
}

// Pacer says when the next call may begin. Its methods are called one at a time.
type Pacer interface {
	// Pause is how long the next call waits; full reports that no further question has room in it.
	Pause(now time.Time, full bool) time.Duration

	// Count notes that a call begins which has n questions.
	Count(now time.Time, n int)
}

// group is what goes with one call.
type group[In, Out any] struct {
	in   []In
	out  []Out
	err  error
	done chan struct{} // closed when out and err are there
}

// Do asks one question. A question goes with a call that begins after it was asked. Only the caller's wait ends with
// ctx.
func (c *Calls[In, Out]) Do(ctx context.Context, key string, in In) (out Out, err error) {
	mine, at := c.join(key, in)
	if mine == nil {
		return out, ErrFull
	}
	select {
	case <-mine.done:
	case <-ctx.Done():
		return out, ctx.Err()
	}
	if mine.err != nil {
		return out, mine.err
	}
	return mine.out[at], nil
}

// Wait waits until no call is under way, for the calls of questions that come meanwhile, too.
func (c *Calls[In, Out]) Wait() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.idle == nil {
		c.idle = sync.NewCond(&c.mu)
	}
	for len(c.byKey) > 0 {
		c.idle.Wait()
	}
}

// join adds to the last group of key that waits; nil = there are too many questions.
func (c *Calls[In, Out]) join(key string, in In) (mine *group[In, Out], at int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.MaxWaiting > 0 && c.waiting >= c.MaxWaiting {
		return nil, 0
	}
	c.waiting++
	groups, running := c.byKey[key]
	if n := len(groups); n > 0 && len(groups[n-1].in) < c.Most {
		mine = groups[n-1]
	} else {
		mine = &group[In, Out]{done: make(chan struct{})}
		if c.byKey == nil {
			c.byKey = make(map[string][]*group[In, Out])
		}
		c.byKey[key] = append(groups, mine)
	}
	mine.in = append(mine.in, in)
	if !running {
		go c.run(key) // it ends with the calls
	}
	return mine, len(mine.in) - 1
}

func (c *Calls[In, Out]) run(key string) {
	for next := c.next(key); next != nil; next = c.next(key) {
		next.out, next.err = c.Call(key, next.in)
		if next.err == nil && len(next.out) != len(next.in) {
			next.err = errors.New("BUG: a call has another number of answers than of questions")
		}
		close(next.done)
		if next.err != nil && c.FailTogether {
			c.fail(key, next.err)
		}
	}
}

// next waits for the time of the next call and takes out its group; nil = the caller's goroutine ends.
func (c *Calls[In, Out]) next(key string) *group[In, Out] {
	c.mu.Lock()
	defer c.mu.Unlock()
	groups := c.byKey[key]
	if c.Pace != nil && len(groups) > 0 {
		if pause := c.Pace.Pause(time.Now(), len(groups) > 1 || len(groups[0].in) >= c.Most); pause > 0 {
			c.mu.Unlock()
			time.Sleep(pause)
			c.mu.Lock()
			groups = c.byKey[key]
		}
	}
	if len(groups) == 0 {
		if delete(c.byKey, key); c.idle != nil {
			c.idle.Broadcast()
		}
		return nil
	}
	first := groups[0]
	c.byKey[key] = groups[1:]
	c.waiting -= len(first.in)
	if c.Pace != nil {
		c.Pace.Count(time.Now(), len(first.in))
	}
	return first
}

// fail answers all questions of key that wait.
func (c *Calls[In, Out]) fail(key string, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, g := range c.byKey[key] {
		c.waiting -= len(g.in)
		g.err = err
		close(g.done)
	}
	c.byKey[key] = nil // the entry stays: its goroutine goes on
}
