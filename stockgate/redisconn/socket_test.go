package redisconn

import (
	"context"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sluice/internal/redistest"
)

func TestClient_UnixSocketLeadsToOneServer(t *testing.T) {
	path := filepath.Join(t.TempDir(), "redis.sock")
	s := redistest.Start(t, "--unixsocket", path)
	o := Options{Topology: Auto, PoolSize: 1, ConnectTimeout: 10 * time.Second, Timeout: 10 * time.Second,
		BreakerErrors: Unbroken, BreakerPause: time.Second}
	for _, address := range []string{path, "unix:" + path} {
		o.Addresses = []string{address}
		c, err := New(o)
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Do(context.Background(), func(ctx context.Context, c Commands) error {
			return c.Incr(ctx, "visits").Err()
		}, nil); err != nil {
			t.Errorf("%s: %v", address, err)
		}
		_ = c.Close()
	}
	if n, err := s.Client.Get(context.Background(), "visits").Int(); err != nil || n != 2 {
		t.Errorf("%d calls reached the server, %v", n, err)
	}
	for _, bad := range []Options{{Topology: Cluster, Addresses: []string{path}},
		{Topology: Sentinel, MasterName: "m", Addresses: []string{"unix:" + path}},
		{Topology: Auto, Addresses: []string{path, "127.0.0.1:1"}}} {
		bad.PoolSize, bad.ConnectTimeout, bad.Timeout, bad.BreakerErrors, bad.BreakerPause = 1, 1, 1, 1, 1
		if _, err := New(bad); err == nil || !strings.Contains(err.Error(), "a unix socket leads to one server") {
			t.Errorf("%+v: %v", bad, err)
		}
	}
}

func TestClient_UnixSocketOfAClusterIsRejected(t *testing.T) {
	path := filepath.Join(t.TempDir(), "redis.sock")
	redistest.Start(t, "--unixsocket", path, "--cluster-enabled", "yes", "--cluster-config-file",
		filepath.Join(t.TempDir(), "nodes.conf"))
	o := Options{Topology: Auto, Addresses: []string{path}, PoolSize: 1, ConnectTimeout: 10 * time.Second,
		Timeout: 10 * time.Second, BreakerErrors: Unbroken, BreakerPause: time.Second}
	c, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := c.Topology(context.Background()); err == nil || !strings.Contains(err.Error(), errSocket.Error()) {
		t.Errorf("%v, want %v", err, errSocket)
	}
}
