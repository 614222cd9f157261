package link

import (
	"context"

	"github.com/redis/go-redis/v9"
)

// Way leads to the server that has a key, or to a certain server. It is a value, cheap to make, and lasts as long as
// its Link.
type Way struct {
	link *Link
	key  string // "" = whichever server
	node *node  // nil = where the key is
}

// To is the way to the server that has key, now and whenever it moves. All keys that a question names must be in its
// slot.
func (l *Link) To(key string) Way { return Way{link: l, key: key} }

// Servers are the ways to each server that takes writes: one, or a cluster's masters.
func (l *Link) Servers(ctx context.Context) ([]Way, error) {
	ctx, cancel := context.WithTimeout(ctx, l.longest)
	defer cancel()
	p, err := l.find(ctx)
	if err != nil {
		return nil, err
	}
	nodes, err := p.servers(ctx)
	if err != nil {
		return nil, err
	}
	ways := make([]Way, len(nodes))
	for i, n := range nodes {
		ways[i] = Way{link: l, node: n}
	}
	return ways, nil
}

// Address is where a way of Servers leads; "" for others, and for a master that sentinels name.
func (w Way) Address() string {
	if w.node == nil {
		return ""
	}
	return w.node.address
}

// Owner is the address of the server that a way leads to now, as far as it is known: "" where it is not, and where there is
// only one.
func (w Way) Owner() string {
	if w.node != nil {
		return w.node.address
	}
	p := w.link.place.Load()
	if p == nil {
		return ""
	}
	if c, many := (*p).(*cluster); many {
		if n := c.owners[Slot(w.key)].Load(); n != nil {
			return n.address
		}
	}
	return ""
}

// Do is Link.Do on this way.
func (w Way) Do(ctx context.Context, ask func(context.Context, *redis.Client) error, lost func(error) error) error {
	return w.Ask(ctx, func(ctx context.Context, c *redis.Client, _ string) error { return ask(ctx, c) }, lost)
}

// Ask is Link.Ask on this way.
func (w Way) Ask(ctx context.Context, ask func(context.Context, *redis.Client, string) error, lost func(error) error) error {
	return w.link.ask(ctx, w, question{ask, lost})
}
