package link

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/redis/go-redis/v9"
)

// find returns what Redis is, having asked it where nobody has yet.
func (l *Link) find(ctx context.Context) (place, error) {
	if p := l.place.Load(); p != nil {
		return *p, nil
	}
	select {
	case l.finding <- struct{}{}:
		defer func() { <-l.finding }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if p := l.place.Load(); p != nil {
		return *p, nil
	}
	report, err := l.breaker.Allow()
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrLeftAlone, err)
	}
	topology, master, err := l.discover(ctx)
	report(err)
	if err != nil {
		return nil, err
	}
	l.log.Info("redis found", "topology", topology, "addresses", strings.Join(l.options.Addresses, " "), "master_name", master)
	if p := l.settle(topology, master); p != nil {
		return p, nil
	}
	return nil, redis.ErrClosed
}

// discover asks one address after the other, beginning with another one each time, until one says what it is.
func (l *Link) discover(ctx context.Context) (topology, master string, err error) {
	all, start := l.options.Addresses, l.next.Add(1)-1
	for i := range all {
		address := all[(start+uint64(i))%uint64(len(all))]
		err = l.options.once(ctx, address, func(ctx context.Context, c *redis.Client) error {
			topology, master, err = kindOf(ctx, c)
			return err
		})
		switch {
		case err != nil:
			continue
		case topology == Single && len(all) > 1:
			return "", "", tooMany(len(all))
		case topology == Cluster && l.options.DB != 0:
			return "", "", errDB
		}
		return topology, master, nil
	}
	return "", "", err
}

// kindOf asks one server what it is. One that does not tell, and is no cluster, is a single one.
func kindOf(ctx context.Context, c *redis.Client) (topology, master string, err error) {
	text, err := c.Info(ctx, "server").Result()
	var reply redis.Error
	if err != nil && !errors.As(err, &reply) || anyPrefix(err, "NOAUTH", "WRONGPASS", "LOADING") {
		return "", "", err
	}
	mode := "" // INFO may be denied
	for line := range strings.Lines(text) {
		if m, ok := strings.CutPrefix(strings.TrimSpace(line), "redis_mode:"); ok {
			mode = m
		}
	}
	switch mode {
	case "sentinel":
		master, err = onlyMaster(ctx, c)
		return Sentinel, master, err
	case "cluster":
		return Cluster, "", nil
	case "":
		if text, err := c.ClusterInfo(ctx).Result(); err == nil && strings.Contains(text, "cluster_state:") {
			return Cluster, "", nil
		}
	}
	return Single, "", nil
}

// anyPrefix reports whether Redis said something that begins with one of these.
func anyPrefix(err error, prefixes ...string) bool {
	return slices.ContainsFunc(prefixes, func(p string) bool { return redis.HasErrorPrefix(err, p) })
}

// onlyMaster is the name of the one master that a sentinel watches.
func onlyMaster(ctx context.Context, c *redis.Client) (string, error) {
	all, err := c.Do(ctx, "sentinel", "masters").Slice()
	if err != nil {
		return "", err
	}
	var names []string
	for _, m := range all {
		names = append(names, nameOf(m))
	}
	if len(names) != 1 {
		return "", fmt.Errorf("the sentinel watches %d masters: %s; write which one as master_name", len(names), strings.Join(names, " "))
	}
	return names[0], nil
}

// nameOf finds the name in names and values, which RESP2 and RESP3 write differently.
func nameOf(m any) string {
	switch all := m.(type) {
	case map[any]any:
		return fmt.Sprint(all["name"])
	case []any:
		for i := 0; i+1 < len(all); i += 2 {
			if all[i] == "name" {
				return fmt.Sprint(all[i+1])
			}
		}
	}
	return ""
}

// settle makes the place of a topology; nil when l is closed.
func (l *Link) settle(topology, master string) place {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return nil
	}
	var p place
	switch topology {
	case Sentinel:
		p = newWatched(l.options, master, l.log)
	case Cluster:
		p = newCluster(l.options, l.log)
	default:
		p = single{newNode(l.options, l.options.Addresses[0], nil)}
	}
	l.place.Store(&p)
	return p
}
