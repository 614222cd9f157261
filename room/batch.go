package room

import (
	"context"
	"errors"
	"sync"
	"time"
)

const (
	batchEvery   = 10 * time.Millisecond // from the begin of a call to that of the next: 100 calls a second
	maxBatch     = 1000                  // questions of one call
	maxPending   = 50_000                // questions that wait for a call
	batchTimeout = time.Second           // of one call
)

var errFull = errors.New("too many requests wait for the room")

// batcher asks a store in one call for all who have asked during the call before. A single question is asked at once.
// When a call fails all questions that wait meanwhile fail with it: no client waits for longer than two calls.
type batcher[Q, A any] struct {
	ask  func(ctx context.Context, questions []Q) ([]A, error)
	work sync.WaitGroup

	mu      sync.Mutex
	pending []*question[Q, A]
	running bool
}

type question[Q, A any] struct {
	q    Q
	a    A
	err  error
	done chan struct{}
}

// do asks q and waits for the answer, for one or two calls.
func (b *batcher[Q, A]) do(q Q) (A, error) {
	own := &question[Q, A]{q: q, done: make(chan struct{})}
	b.mu.Lock()
	if len(b.pending) >= maxPending {
		b.mu.Unlock()
		return own.a, errFull
	}
	b.pending = append(b.pending, own)
	if !b.running {
		b.running = true
		b.work.Go(b.run)
	}
	b.mu.Unlock()
	<-own.done
	return own.a, own.err
}

// run makes calls while there are questions.
func (b *batcher[Q, A]) run() {
	for {
		b.mu.Lock()
		some := b.pending[:min(len(b.pending), maxBatch)]
		b.pending = b.pending[len(some):]
		if len(some) == 0 {
			b.pending, b.running = nil, false
			b.mu.Unlock()
			return
		}
		b.mu.Unlock()
		next := time.After(batchEvery)
		if err := b.call(some); err != nil {
			b.fail(err)
		}
		<-next
	}
}

// fail answers all questions that wait with err.
func (b *batcher[Q, A]) fail(err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, one := range b.pending {
		one.err = err
		close(one.done)
	}
	b.pending = nil
}

func (b *batcher[Q, A]) call(some []*question[Q, A]) error {
	ctx, cancel := context.WithTimeout(context.Background(), batchTimeout)
	defer cancel()
	questions := make([]Q, len(some))
	for i, one := range some {
		questions[i] = one.q
	}
	answers, err := b.ask(ctx, questions)
	if err == nil && len(answers) != len(some) {
		err = errors.New("BUG: a batch of questions has another number of answers")
	}
	for i, one := range some {
		if one.err = err; err == nil {
			one.a = answers[i]
		}
		close(one.done)
	}
	return err
}
