package redisconn

import (
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"sluice/internal/redistest"
	"sluice/internal/testkit"
)

// findsOut needs sentinels, which TestSentinel_WithoutAFailOver has.
func findsOut(t *testing.T, watched *redistest.Watched) {
	single, cluster := redistest.Start(t), redistest.Cluster(t, 2)
	for want, addresses := range map[string][]string{
		Single: {single.Addr}, Cluster: cluster.Addrs(), Sentinel: watched.Addrs(),
	} {
		l := overCluster(t, addresses, func(o *Options) { o.Topology = Auto })
		got, err := l.Topology(t.Context())
		if err != nil || got != want {
			t.Errorf("%s: %q, %v", want, got, err)
		}
		if err := ping(t, l); err != nil {
			t.Errorf("%s: %v", want, err)
		}
	}
}

func TestRedisconn_AutoFindsAClusterThatDoesNotTellItsMode(t *testing.T) {
	t.Parallel()
	cluster := redistest.Cluster(t, 2)
	for _, s := range cluster.Masters {
		if err := s.Client.Do(t.Context(), "acl", "setuser", "app", "on", ">secret", "~*", "&*", "+@all",
			"-info").Err(); err != nil {
			t.Fatal(err)
		}
	}
	l := overCluster(t, cluster.Addrs(), func(o *Options) {
		o.Topology, o.Username, o.Password, o.Identify = Auto, "app", func() string { return "secret" }, nil
	})
	if got, err := l.Topology(t.Context()); err != nil || got != Cluster {
		t.Fatalf("%q, %v", got, err)
	}
	for _, key := range skus(5) {
		if _, err := count(t.Context(), l, key); err != nil {
			t.Fatal(err)
		}
	}
}

func TestRedisconn_TwoServersOfNoClusterAreRejected(t *testing.T) {
	a, b := redistest.Start(t), redistest.Start(t)
	l := overCluster(t, []string{a.Addr, b.Addr}, func(o *Options) { o.Topology = Auto })
	if _, err := l.Topology(t.Context()); err == nil || !strings.Contains(err.Error(), "one address") {
		t.Fatal(err)
	}
	if err := ping(t, l); err == nil {
		t.Fatal("one of them was asked")
	}
}

func TestRedisconn_RedisThatIsAwayIsFoundOutLater(t *testing.T) {
	server := redistest.Start(t)
	server.Kill()
	l := overCluster(t, []string{server.Addr}, func(o *Options) { o.Topology = Auto })
	if _, err := l.Topology(t.Context()); err == nil {
		t.Fatal("nobody was asked")
	}
	server.Restart()
	testkit.Eventually(t, "found", func() bool {
		got, err := l.Topology(t.Context())
		return err == nil && got == Single
	})
}

func TestRedisconn_WrongOptionsAreRejected(t *testing.T) {
	good := Options{Addresses: []string{"a:1"}, PoolSize: 1, ConnectTimeout: time.Second, Timeout: time.Second,
		BreakerErrors: 1, BreakerPause: time.Second}
	for what, change := range map[string]func(*Options){
		"no address":               func(o *Options) { o.Addresses = nil },
		"two single ones":          func(o *Options) { o.Addresses = []string{"a:1", "b:1"} },
		"a sentinel without name":  func(o *Options) { o.Topology = Sentinel },
		"a cluster's database":     func(o *Options) { o.Topology, o.DB = Cluster, 1 },
		"what nobody has heard of": func(o *Options) { o.Topology = "ring" },
		"no connection":            func(o *Options) { o.PoolSize = 0 },
	} {
		o := good
		change(&o)
		if l, err := New(o); err == nil {
			l.Close()
			t.Errorf("%s: accepted", what)
		}
	}
}

// Whoever is not let in has not been told what Redis is.
func TestRedisconn_RedisThatDoesNotLetTheUserInIsFoundOutLater(t *testing.T) {
	t.Parallel()
	nodes := redistest.Cluster(t, 3)
	l := overCluster(t, nodes.Addrs()[:1], func(o *Options) {
		o.Topology, o.Username, o.Password = Auto, "gate", func() string { return "a secret" }
	})
	if err := ping(t, l); !redis.HasErrorPrefix(err, "WRONGPASS") {
		t.Fatalf("it was let in: %v", err)
	}
	for _, s := range nodes.Masters {
		if err := s.Client.Do(t.Context(), "acl", "setuser", "gate", "on", ">a secret", "~*", "&*",
			"+@all").Err(); err != nil {
			t.Fatal(err)
		}
	}
	testkit.Eventually(t, "it is let in", func() bool { return ping(t, l) == nil })
	if topology, err := l.Topology(t.Context()); err != nil || topology != Cluster {
		t.Errorf("a cluster was taken for %q, %v", topology, err)
	}
}
