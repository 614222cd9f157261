package main

import (
	"context"
	"fmt"
	"os/exec"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"

	"sluice/internal/load"
)

// store is the redis-server of a run.
type store struct {
	*load.Process
	address string
	client  *redis.Client
}

func openStore(ctx context.Context, dir string) (*store, error) {
	p, address, err := load.StartRedis(ctx, dir, "--tcp-backlog", "4096")
	if err != nil {
		return nil, err
	}
	return &store{p, address, redis.NewClient(&redis.Options{Addr: address})}, nil
}

func (s *store) stop() {
	_ = s.client.Close()
	s.Process.Stop()
}

// stock empties the store and puts up what the scenario sells, for a gate that keeps counters.
func (s *store) stock(ctx context.Context, units int) error {
	if err := s.client.FlushAll(ctx).Err(); err != nil {
		return err
	}
	return s.client.MSet(ctx, "stock:open", plenty, "stock:gone", 0, "stock:sale", units).Err()
}

// ledger lets sluice make one.
func ledger(ctx context.Context, binary, file, sku string, units int) error {
	text, err := exec.CommandContext(ctx, binary, "stock", "set", "--config", file, "--kind", "ledger", sku,
		strconv.Itoa(units)).CombinedOutput()
	if err != nil {
		return fmt.Errorf("set the stock of %s: %w: %s", sku, err, strings.TrimSpace(string(text)))
	}
	return nil
}

// calls is how many commands clients have sent so far. Commands that scripts call for themselves count as well in
// Redis's own sums, so that those that only clients send are added up. A script of nginx calls GET once, and ledger
// scripts do not: what there is beyond was sent by clients.
func (s *store) calls(ctx context.Context) (sum int64, err error) {
	text, err := s.client.Info(ctx, "commandstats").Result()
	scripts, gets := int64(0), int64(0)
	for line := range strings.Lines(text) {
		name, rest, _ := strings.Cut(line, ":calls=")
		digits, _, _ := strings.Cut(rest, ",")
		n, _ := strconv.ParseInt(digits, 10, 64) // 0 of a line without calls
		switch strings.TrimPrefix(name, "cmdstat_") {
		case "evalsha", "eval", "fcall", "evalsha_ro", "eval_ro", "fcall_ro":
			scripts += n
		case "get":
			gets = n
		case "mget", "ping":
			sum += n
		}
	}
	return sum + scripts + max(gets-scripts, 0), err
}
