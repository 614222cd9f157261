package redisconn

import (
	"context"
	"sync"
)

// Each makes one call about many keys: one round trip to each server that has some of them, at the same time. ask
// gets the positions of the keys that this server has, and may be called again for some of them when those have moved:
// it must only read. The errors come back by position; nil when there is none at all.
func (l *Client) Each(ctx context.Context, keys []string,
	ask func(ctx context.Context, c Commands, which []int) error, lost lostFunc) []error {
	return l.AskEach(ctx, keys, func(ctx context.Context, c Commands, _ string, which []int) error {
		return ask(ctx, c, which)
	}, lost)
}

// AskEach is Each, and tells ask which server it reaches, as Ask does. An ask that writes must leave out, when it is
// called again, what that or another server has answered. It must not return an error that sends it elsewhere
// (Redirected) when of some keys it is unknown whether it was done.
func (l *Client) AskEach(ctx context.Context, keys []string,
	ask func(ctx context.Context, c Commands, server string, which []int) error, lost lostFunc) []error {
	ctx, cancel := context.WithTimeout(ctx, l.options.longest())
	defer cancel()
	var mu sync.Mutex
	var errs []error
	fail := func(which []int, err error) {
		mu.Lock()
		defer mu.Unlock()
		if errs == nil && err != nil {
			errs = make([]error, len(keys))
		}
		for _, i := range which {
			if err != nil {
				errs[i] = err
			}
		}
	}
	about := func(which []int) call {
		return call{func(ctx context.Context, c Commands, server string) error {
			return ask(ctx, c, server, which)
		}, lost}
	}
	every := make([]int, len(keys))
	for i := range every {
		every[i] = i
	}
	t, err := l.find(ctx)
	if err == nil {
		err = l.guard(ctx)
	}
	if err != nil {
		fail(every, err)
		return errs
	}
	c, many := t.(*cluster)
	if !many {
		fail(every, t.call(ctx, Route{link: l}, about(every)))
		return errs
	}
	byServer := make(map[*server][]int)
	for i, key := range keys {
		s, err := c.owner(ctx, key)
		if err != nil { // a slot without an owner harms no other key
			fail([]int{i}, err)
			continue
		}
		byServer[s] = append(byServer[s], i)
	}
	var asked sync.WaitGroup
	for s, which := range byServer {
		asked.Go(func() {
			err := c.call(ctx, Route{link: l, server: s}, about(which))
			if !Redirected(err) {
				fail(which, err)
				return
			}
			c.slots.ReloadState(ctx)
			for _, i := range which {
				fail([]int{i}, c.call(ctx, l.To(keys[i]), about([]int{i})))
			}
		})
	}
	asked.Wait()
	return errs
}
