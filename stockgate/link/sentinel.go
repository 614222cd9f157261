package link

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
)

// askSentinels is how often the sentinels are asked who the master is, while anybody asks that: a master that was
// replaced may still answer those who can reach it.
const askSentinels = time.Second

// watched is the master that sentinels name. Its session ends when they name another one.
type watched struct {
	*node
	asks    Options // of the sentinels
	master  string
	log     *slog.Logger
	known   atomic.Pointer[string] // where the master was last
	watcher *errands
}

func newWatched(o Options, master string, log *slog.Logger) *watched {
	w := &watched{asks: o, master: master, log: log}
	w.asks.DB = 0
	w.watcher = newErrands(w.look, askSentinels, reviewSoon)
	w.node = newNode(o, "", w.locate)
	return w
}

func (w *watched) ask(ctx context.Context, _ Way, q question) error {
	w.watcher.due()
	err := w.node.ask(ctx, q, false)
	if err != nil && (errors.Is(err, ErrLeftAlone) || q.lost(err) != nil) {
		w.watcher.soon()
	}
	return err
}

func (w *watched) servers(context.Context) ([]*node, error) { return []*node{w.node}, nil }

func (*watched) topology() string { return Sentinel }

func (w *watched) close() {
	w.watcher.close()
	w.node.close()
}

// look ends the session of a master that has been replaced.
func (w *watched) look(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, w.asks.ConnectTimeout+w.asks.Timeout)
	defer cancel()
	s := w.session.Load()
	if at := s.where(); at != "" {
		if now, err := w.locate(ctx); err == nil && now != at {
			w.replace(s)
		}
	}
}

// locate asks all sentinels at once, and believes what at least half of them say: fewer may be on the side of a master that
// was cut off and replaced, and somebody who begins there is not known, and so not waited for, at its successor. Of two that half
// of them name each, it is the one that it was.
func (w *watched) locate(ctx context.Context) (string, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	type word struct {
		address string
		err     error
	}
	words := make(chan word, len(w.asks.Addresses))
	for _, sentinel := range w.asks.Addresses {
		go func() { // ends with ctx, within ConnectTimeout + Timeout
			address, err := w.askOne(ctx, sentinel)
			words <- word{address, err}
		}()
	}
	votes, best, before := make(map[string]int), "", w.known.Load()
	var faults []error
	for range w.asks.Addresses {
		said := <-words
		if said.err != nil {
			faults = append(faults, said.err)
			continue
		}
		votes[said.address]++
		if n := votes[said.address]; n > votes[best] || n == votes[best] && before != nil && *before == said.address {
			best = said.address
		}
		if votes[best] > len(w.asks.Addresses)/2 {
			break
		}
	}
	if all := len(w.asks.Addresses); 2*votes[best] < all {
		return "", fmt.Errorf("find the master %q: no %d of %d sentinels agree, which say %v: %w",
			w.master, (all+1)/2, all, votes, errors.Join(faults...))
	}
	w.tell(best)
	return best, nil
}

// tell says where the master is when it is somewhere else.
func (w *watched) tell(address string) {
	if before := w.known.Swap(&address); before != nil && *before != address {
		w.log.Warn("redis has another master", "master_name", w.master, "before", *before, "now", address)
	}
}

// askOne asks one sentinel where the master is.
func (w *watched) askOne(ctx context.Context, sentinel string) (address string, err error) {
	err = w.asks.once(ctx, sentinel, func(ctx context.Context, c *redis.Client) error {
		at, err := c.Do(ctx, "sentinel", "get-master-addr-by-name", w.master).StringSlice()
		switch {
		case errors.Is(err, redis.Nil):
			return fmt.Errorf("it knows no master %q", w.master)
		case err == nil && len(at) != 2:
			return fmt.Errorf("it says %q", at)
		case err != nil:
			return err
		}
		address = net.JoinHostPort(at[0], at[1])
		return nil
	})
	return address, err
}
