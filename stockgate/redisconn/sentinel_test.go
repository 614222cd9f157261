package redisconn

import (
	"context"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"sluice/internal/redistest"
	"sluice/internal/testkit"
)

func behind(t *testing.T, w *redistest.Watched, change func(*Options)) *Client {
	t.Helper()
	return overCluster(t, w.Addrs(), func(o *Options) {
		o.Topology, o.MasterName = Sentinel, w.Name
		if change != nil {
			change(o)
		}
	})
}

func TestSentinel_QuestionsGoToTheMasterThatSentinelsName(t *testing.T) {
	testkit.Nightly(t, "a fail-over by the clock of sentinels")
	t.Parallel()
	w := redistest.Sentinel(t)
	l := behind(t, w, nil)
	before, err := count(t.Context(), l, "n")
	if err != nil {
		t.Fatal(err)
	}
	old := w.Master()
	conn := old.Client.Conn() // WAIT is about the writes of one connection, and all that came before them
	defer conn.Close()
	if err := conn.Incr(t.Context(), "other").Err(); err != nil {
		t.Fatal(err)
	}
	testkit.Eventually(t, "both replicas have it", func() bool {
		return conn.Wait(t.Context(), 2, time.Second).Val() == 2
	})
	w.Sentinels[0].Kill() // two are enough
	old.Kill()
	next := w.Successor(old)
	after := before
	testkit.Eventually(t, "the successor is asked", func() bool {
		after, err = count(t.Context(), l, "n")
		return err == nil
	})
	if before == after {
		t.Error("it is said to be the same server")
	}
	if n := next.Client.Get(t.Context(), "n").Val(); n != "2" {
		t.Errorf("the successor has %q", n)
	}
}

// A fail-over by hand demotes a master that lives: whoever still asks it is refused, and nothing is lost.
func TestSentinel_DemotedMasterIsLeft(t *testing.T) {
	t.Parallel()
	w := redistest.Sentinel(t)
	l := behind(t, w, nil)
	if _, err := count(t.Context(), l, "n"); err != nil {
		t.Fatal(err)
	}
	old := w.Master()
	testkit.Eventually(t, "the sentinel has a good replica", func() bool {
		return w.Sentinels[0].Client.Do(t.Context(), "sentinel", "failover", w.Name).Err() == nil
	})
	next := w.Elected(old)
	testkit.Eventually(t, "the successor is asked", func() bool {
		_, err := count(t.Context(), l, "n")
		return err == nil && next.Calls("incr") > 0
	})
}

// Those who can still reach a master that was replaced must not go on with it.
func TestSentinel_MasterThatIsReplacedButAnswersIsLeft(t *testing.T) {
	testkit.Nightly(t, "a fail-over by the clock of sentinels")
	t.Parallel()
	w := redistest.Sentinel(t)
	l := behind(t, w, nil)
	if _, err := count(t.Context(), l, "n"); err != nil {
		t.Fatal(err)
	}
	old := w.Master()
	old.Pause() // so that the sentinels replace it
	next := w.Successor(old)
	place := (*l.topology.Load()).(*watched)
	testkit.Eventually(t, "the session of the old master ends", func() bool {
		_, err := count(t.Context(), l, "n")
		at := place.session.Load().address.Load()
		return err == nil && at != nil && *at == next.Addr
	})
	old.Resume()
	if n := next.Calls("incr"); n == 0 {
		t.Error("the successor was not asked")
	}
}

// One set of sentinels serves these tests, which change nothing: it takes seconds until sentinels know each other.
func TestSentinel_WithoutAFailOver(t *testing.T) {
	t.Parallel()
	w := redistest.Sentinel(t)
	t.Run("a connection to a replica is no connection", func(t *testing.T) {
		o := (*behind(t, w, nil).topology.Load()).(*watched).options
		n := newServer(o, "", func(context.Context) (string, error) { return w.Servers[1].Addr, nil })
		defer n.close()
		err := n.call(t.Context(), Route{}, call{func(ctx context.Context, c Commands, _ string) error {
			return c.Get(ctx, "n").Err()
		}, always})
		if err == nil || err == redis.Nil {
			t.Fatalf("a replica was believed: %v", err)
		}
	})
	t.Run("a misspelt master's name is an error", func(t *testing.T) {
		l := behind(t, w, func(o *Options) { o.MasterName = "misspelt" })
		if err := ping(t, l); err == nil {
			t.Fatal("a misspelt master answered")
		}
	})
	t.Run("sentinels that do not know the user are asked without one", func(t *testing.T) { withoutUser(t, w) })
	t.Run("auto finds single servers, clusters and sentinels", func(t *testing.T) { findsOut(t, w) })
	t.Run("fewer than half of the sentinels are not believed", func(t *testing.T) { fewerThanHalf(t, w) }) // it changes one
}
