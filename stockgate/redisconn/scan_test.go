package redisconn

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"sluice/internal/redistest"
)

// hashInCluster is a cluster of two masters, with a hash of n fields, and a client of it.
func hashInCluster(t *testing.T, key string, n int) (*redistest.Nodes, *Client) {
	t.Helper()
	nodes := redistest.Cluster(t, 2)
	l, err := New(Options{Topology: Cluster, Addresses: nodes.Addrs(), PoolSize: 2, ConnectTimeout: 5 * time.Second,
		Timeout: 5 * time.Second, BreakerErrors: Unbroken, BreakerPause: time.Second, Identify: RunID})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	var fields []any
	for i := range n {
		fields = append(fields, fmt.Sprint("field-", i), i)
	}
	if err := nodes.Client().HSet(t.Context(), key, fields...).Err(); err != nil {
		t.Fatal(err)
	}
	return nodes, l
}

// A slot migrates: its keys are at the new owner, and the old one, who is asked first, only says so.
func TestScan_ReadsAKeyWhoseSlotMigrates(t *testing.T) {
	const key, n = "{1001}", 5000
	nodes, l := hashInCluster(t, key, n)
	slot, to := redistest.Slot("1001"), nodes.Masters[0]
	if nodes.Owner(slot) == to {
		to = nodes.Masters[1]
	}
	looks := 0
	nodes.Move(slot, to, func() {
		found := map[string]bool{}
		err := l.To(key).Scan(t.Context(), func(ctx context.Context, c Commands, cursor uint64) *redis.ScanCmd {
			return c.HScan(ctx, key, cursor, "", 100)
		}, func(cursor uint64, page []string) (bool, error) {
			if cursor == 0 {
				clear(found)
			}
			for i := 0; i < len(page); i += 2 {
				found[page[i]] = true
			}
			return true, nil
		}, Unanswered)
		if looks++; err != nil || len(found) != n {
			t.Errorf("%d of %d fields were read: %v", len(found), n, err)
		}
	})
	if looks == 0 {
		t.Error("the slot did not migrate")
	}
}

// A slot moves between two pages of a hash: its cursor means nothing on the other server. All that is there is read.
func TestScan_BeginsAgainWhereAnotherServerAnswers(t *testing.T) {
	const key, n = "{1001}", 5000
	nodes, l := hashInCluster(t, key, n)
	slot := redistest.Slot("1001")
	for _, endless := range []bool{false, true} {
		found, begun, moved := map[string]bool{}, 0, 0 // moved: in which scan the slot moved last
		err := l.To(key).Scan(t.Context(), func(ctx context.Context, c Commands, cursor uint64) *redis.ScanCmd {
			return c.HScan(ctx, key, cursor, "", 100)
		}, func(cursor uint64, page []string) (bool, error) {
			if cursor == 0 {
				found, begun = map[string]bool{}, begun+1
			}
			for i := 0; i < len(page); i += 2 {
				found[page[i]] = true
			}
			if len(found) > n/2 && moved < begun && (moved == 0 || endless) {
				moved = begun
				to := nodes.Masters[0]
				if nodes.Owner(slot) == to {
					to = nodes.Masters[1]
				}
				nodes.Move(slot, to, nil)
			}
			return true, nil
		}, Unanswered)
		switch { // right behind a move the client may try the server before once more
		case endless && !errors.Is(err, ErrMoving):
			t.Errorf("the slot moves in each scan: %v", err)
		case !endless && (err != nil || len(found) != n || begun < 2):
			t.Errorf("%d of %d fields were read in %d scans: %v", len(found), n, begun, err)
		}
	}
}
