package redisconn

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"sluice/internal/periodic"
)

// voteInterval is how often the sentinels are asked who the master is: a master that was replaced may still answer
// those who can reach it.
const voteInterval = time.Second

// watched is the master that sentinels name. go-redis' FailoverClient believes the first sentinel that answers, and
// follows the messages of one: a client that begins beside a master that was cut off and replaced would sell there.
type watched struct {
	*server
	asks      Options
	master    string
	sentinels []*sentinel
	last      atomic.Pointer[vote]
	voting    chan struct{} // held while the sentinels vote
	stop      context.CancelFunc
	all       sync.WaitGroup
}

// vote is what at least half of the sentinels said.
type vote struct {
	address string
	at      time.Time
}

// sentinel is the connection to one of them.
type sentinel struct {
	client    *redis.SentinelClient
	anonymous atomic.Bool // it does not know the user, whom often only the servers have
}

// watchMaster begins to follow a master by the name that the sentinels know.
func watchMaster(o Options, master string) *watched {
	w := &watched{asks: o, master: master, voting: make(chan struct{}, 1)}
	for _, address := range o.Addresses {
		s, to := &sentinel{}, goRedisOptions(o, address)
		to.DB, to.PoolSize, to.PoolTimeout = 0, 1, o.longest()
		to.CredentialsProvider = func() (string, string) {
			if s.anonymous.Load() {
				return "", ""
			}
			return o.credentials()
		}
		s.client = redis.NewSentinelClient(&to)
		w.sentinels = append(w.sentinels, s)
	}
	w.server = newServer(o, "", w.locate)
	ctx, stop := context.WithCancel(context.Background())
	w.stop = stop
	w.all.Go(func() { w.watch(ctx) })
	return w
}

func (*watched) name() string { return Sentinel }

func (w *watched) close() {
	w.stop()
	w.all.Wait()
	w.server.close()
	for _, s := range w.sentinels {
		_ = s.client.Close()
	}
}

// watch ends the session of a master that has been replaced.
func (w *watched) watch(ctx context.Context) {
	periodic.After(ctx, voteInterval, func(ctx context.Context) {
		on := w.session.Load()
		if at := on.address.Load(); at != nil {
			if now, err := w.locate(ctx); err == nil && now != *at {
				w.replace(on)
			}
		}
	})
}

// locate is where the master is, by a vote that is at most half an interval old.
func (w *watched) locate(ctx context.Context) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, w.asks.longest())
	defer cancel()
	select {
	case w.voting <- struct{}{}:
		defer func() { <-w.voting }()
	case <-ctx.Done():
		return "", ctx.Err()
	}
	before := w.last.Load()
	if before != nil && time.Since(before.at) < voteInterval/2 {
		return before.address, nil
	}
	now, err := w.vote(ctx, before)
	if err != nil {
		return "", err
	}
	if w.last.Store(&vote{now, time.Now()}); before != nil && before.address != now {
		w.asks.Log.Warn("redis has another master", "master_name", w.master, "before", before.address, "now", now)
	}
	return now, nil
}

// vote asks all sentinels at once, and believes what at least half of them say. Fewer may be beside a master that was
// cut off and replaced, and an instance that begins there is not known, and so not waited for, at its successor. Of two
// addresses that half of them name each, it is the one of before.
func (w *watched) vote(ctx context.Context, before *vote) (string, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	type reply struct {
		address string
		err     error
	}
	replies := make(chan reply, len(w.sentinels))
	for _, s := range w.sentinels {
		go func() { // ends within ConnectTimeout + Timeout
			address, err := s.masterAddress(ctx, w.master)
			replies <- reply{address, err}
		}()
	}
	votes, best, faults := make(map[string]int), "", []error(nil)
	for range w.sentinels {
		said := <-replies
		if said.err != nil {
			faults = append(faults, said.err)
			continue
		}
		votes[said.address]++
		n, known := votes[said.address], before != nil && before.address == said.address
		if n > votes[best] || n == votes[best] && known {
			best = said.address
		}
		if votes[best] > len(w.sentinels)/2 {
			break
		}
	}
	if all := len(w.sentinels); 2*votes[best] < all {
		return "", fmt.Errorf("find the master %q: no %d of %d sentinels agree, which say %v: %w",
			w.master, (all+1)/2, all, votes, errors.Join(faults...))
	}
	return best, nil
}

// masterAddress asks one sentinel where the master is.
func (s *sentinel) masterAddress(ctx context.Context, master string) (string, error) {
	at, err := s.client.GetMasterAddrByName(ctx, master).Result()
	if anyPrefix(err, "WRONGPASS", "NOAUTH") {
		s.anonymous.Store(redis.HasErrorPrefix(err, "WRONGPASS"))
		at, err = s.client.GetMasterAddrByName(ctx, master).Result()
	}
	switch {
	case errors.Is(err, redis.Nil):
		return "", fmt.Errorf("it knows no master %q", master)
	case err == nil && len(at) != 2:
		return "", fmt.Errorf("it says %q", at)
	case err != nil:
		return "", err
	}
	return net.JoinHostPort(at[0], at[1]), nil
}
