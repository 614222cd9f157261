package link

import (
	"context"
	"sync"

	"github.com/redis/go-redis/v9"
)

// Each puts one question about many keys: one round trip to each server that has some of them, at the same time. ask
// gets the positions of the keys that this server has, and may be called again for some of them when those have moved:
// it must only read. The errors come back by position; nil when there is none at all.
func (l *Link) Each(ctx context.Context, keys []string, ask func(ctx context.Context, c *redis.Client, which []int) error, lost func(error) error) []error {
	return l.AskEach(ctx, keys, func(ctx context.Context, c *redis.Client, _ string, which []int) error { return ask(ctx, c, which) }, lost)
}

// AskEach is Each, and tells ask which server it speaks to, as Ask does. An ask that writes must leave out, when it is called
// again, what that or another server has answered, and must not return an error that sends it elsewhere (Elsewhere) when of
// some keys nobody knows whether it was done.
func (l *Link) AskEach(ctx context.Context, keys []string, ask func(ctx context.Context, c *redis.Client, server string, which []int) error, lost func(error) error) []error {
	e := &each{link: l, keys: keys, ask: ask, lost: lost}
	ctx, cancel := context.WithTimeout(ctx, l.longest)
	defer cancel()
	p, err := l.find(ctx)
	if err != nil {
		e.fail(e.all(), err)
		return e.errs
	}
	c, many := p.(*cluster)
	if !many {
		e.put(ctx, Way{link: l}, e.all())
		return e.errs
	}
	if err := c.know(ctx); err != nil {
		c.review.soon()
		e.fail(e.all(), err)
		return e.errs
	}
	var asked sync.WaitGroup
	for n, which := range e.byNode(c) {
		asked.Go(func() { e.server(ctx, c, n, which) })
	}
	asked.Wait()
	return e.errs
}

// each is one call of Each.
type each struct {
	link *Link
	keys []string
	ask  func(context.Context, *redis.Client, string, []int) error
	lost func(error) error

	mu   sync.Mutex
	errs []error
}

func (e *each) all() []int {
	which := make([]int, len(e.keys))
	for i := range which {
		which[i] = i
	}
	return which
}

// byNode puts the keys together that one server has; those that nobody has are under nil.
func (e *each) byNode(c *cluster) map[*node][]int {
	groups := make(map[*node][]int)
	for i, key := range e.keys {
		n := c.owners[Slot(key)].Load()
		groups[n] = append(groups[n], i)
	}
	return groups
}

// server asks one server about its keys. When some of them are not there any more, each slot goes its own way.
func (e *each) server(ctx context.Context, c *cluster, n *node, which []int) {
	if n != nil {
		err := c.ask(ctx, Way{link: e.link, node: n}, e.question(which))
		if err == nil {
			return
		}
		if elsewhere(err).kind == here {
			e.fail(which, err)
			return
		}
	}
	for _, some := range e.bySlot(which) {
		e.put(ctx, e.link.To(e.keys[some[0]]), some)
	}
}

func (e *each) bySlot(which []int) map[int][]int {
	groups := make(map[int][]int)
	for _, i := range which {
		slot := Slot(e.keys[i])
		groups[slot] = append(groups[slot], i)
	}
	return groups
}

// put asks about some keys on one way.
func (e *each) put(ctx context.Context, w Way, which []int) {
	q := e.question(which)
	if err := e.link.ask(ctx, w, q); err != nil {
		e.fail(which, err)
	}
}

func (e *each) question(which []int) question {
	return question{func(ctx context.Context, c *redis.Client, server string) error { return e.ask(ctx, c, server, which) }, e.lost}
}

// fail notes the error of some keys.
func (e *each) fail(which []int, err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.errs == nil {
		e.errs = make([]error, len(e.keys))
	}
	for _, i := range which {
		e.errs[i] = err
	}
}
