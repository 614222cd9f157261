package ledger

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"sluice/internal/redistest"
	"sluice/internal/testkit"
	"sluice/stockgate/redisconn"
)

// unrest does to a cluster, until ctx ends, what may happen to one that forgets nothing: slots of some SKUs move, and a
// master hangs or forgets its scripts while the others are well.
func unrest(ctx context.Context, nodes *redistest.Nodes, skus []string, n *rand.Rand) {
	bg := context.Background()
	for ctx.Err() == nil {
		server := nodes.Masters[n.IntN(len(nodes.Masters))]
		switch n.IntN(5) {
		case 0:
			_ = server.Client.ClientKillByFilter(bg, "type", "normal", "skipme", "yes").Err()
		case 1:
			_ = server.Client.ScriptFlush(bg).Err()
		case 2:
			server.Pause()
			time.Sleep(time.Duration(n.IntN(800)) * time.Millisecond) // the server hangs for so long
			server.Resume()
		default:
			slot := redistest.Slot(redisconn.Tag(home(skus[n.IntN(len(skus))])))
			nodes.Move(slot, server, func() {
				time.Sleep(time.Duration(n.IntN(100)) * time.Millisecond) // buyers come while the slot is half moved
			})
		}
		time.Sleep(time.Duration(20+n.IntN(80)) * time.Millisecond) // buyers come between two faults
	}
}

// Round trips that calls share are to one server, and what they are about may be at another by then.
func TestPipelineCluster_SalesOfManySKUsAreRightWhileTheirSlotsMove(t *testing.T) {
	t.Parallel()
	const sold, buyers = 60, 300
	nodes := redistest.Cluster(t, 3)
	direct := onCluster(t, nodes)
	c := &throng{t: t, heard: make(map[string]map[string]Op)}
	for range 2 {
		o := optionsFor(nodes.Masters[0], 4)
		o.Topology, o.Addresses, o.Timeout = redisconn.Cluster, nodes.Addrs(), 150*time.Millisecond
		r := testkit.Must[*Store](t)(NewStore(o))
		t.Cleanup(func() { r.Close() })
		options := testOptions()
		options.Timeout, options.MaxWait = 300*time.Millisecond, time.Second
		c.reservers = append(c.reservers, opened(t, options, r, nil))
	}
	var skus []string
	for i := range sold {
		skus = append(skus, fmt.Sprint("sku ", i))
		testkit.Must[Stock](t)(direct.SetTotal(t.Context(), skus[i], 3, 3))
	}
	ctx, calm := context.WithCancel(t.Context())
	var trouble sync.WaitGroup
	trouble.Go(func() { unrest(ctx, nodes, skus, rand.New(rand.NewPCG(7, 0))) })
	testkit.Storm(buyers, 64, func(i int) {
		c.buy(skus[i%sold], fmt.Sprint("key-", i), rand.New(rand.NewPCG(7, uint64(i))))
	})
	calm()
	trouble.Wait()
	for _, sku := range skus {
		var err error
		testkit.Eventually(
			t,
			"the books balance",
			func() bool { err = c.balances(direct, sku); return err == nil || t.Failed() },
		)
		testkit.Check(t, err)
	}
}
