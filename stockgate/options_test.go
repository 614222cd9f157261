package stockgate

import (
	"testing"
	"time"

	"sluice/internal/redistest"
	"sluice/internal/testkit"
	"sluice/stockgate/layout"
)

func TestStockgate_OptionsThatCannotWorkAreRejected(t *testing.T) {
	for what, change := range map[string]func(*Options){
		"no clock":         func(o *Options) { o.Now = nil },
		"negative refresh": func(o *Options) { o.Refresh = -1 },
		"negative memory":  func(o *Options) { o.SoldOutMemory = -1 },
		"negative wait":    func(o *Options) { o.Wait = -1 },
		"negative cap":     func(o *Options) { o.PerUnit = -1 },
		"negative table":   func(o *Options) { o.MaxSKUs = -1 },
	} {
		o := options()
		change(&o)
		if g, err := New(o, NewMemory()); err == nil {
			g.Close()
			t.Errorf("%s: accepted", what)
		}
	}
}

func TestStockgate_RedisOptionsThatCannotWorkAreRejected(t *testing.T) {
	l, err := layout.New(layouts()["counter"])
	testkit.Check(t, err)
	good := RedisOptions{
		Addresses: []string{"127.0.0.1:1"}, PoolSize: 1, ConnectTimeout: 1, Timeout: 1, BreakerErrors: 1, BreakerPause: 1,
	}
	r, err := NewRedis(good, l)
	testkit.Check(t, err)
	testkit.Check(t, r.Close())
	for what, change := range map[string]func(*RedisOptions){
		"no address":    func(o *RedisOptions) { o.Addresses = nil },
		"two addresses": func(o *RedisOptions) { o.Addresses = []string{"a:1", "b:1"} },
		"no pool":       func(o *RedisOptions) { o.PoolSize = 0 },
		"no connect":    func(o *RedisOptions) { o.ConnectTimeout = 0 },
		"no timeout":    func(o *RedisOptions) { o.Timeout = 0 },
		"no errors":     func(o *RedisOptions) { o.BreakerErrors = 0 },
		"no pause":      func(o *RedisOptions) { o.BreakerPause = 0 },
	} {
		o := good
		change(&o)
		if r, err := NewRedis(o, l); err == nil {
			r.Close()
			t.Errorf("%s: accepted", what)
		}
	}
}

func TestStockgate_RedisOnAUnixSocket(t *testing.T) {
	path := t.TempDir() + "/s"
	redistest.Start(t, "--unixsocket", path)
	l, err := layout.New(layouts()["counter"])
	testkit.Check(t, err)
	r, err := NewRedis(RedisOptions{
		Addresses: []string{path}, PoolSize: 1, ConnectTimeout: 5 * time.Second, Timeout: 5 * time.Second,
		BreakerErrors: 1, BreakerPause: time.Second,
	}, l)
	testkit.Check(t, err)
	t.Cleanup(func() { r.Close() })
	testkit.Check(t, r.Ping(t.Context()))
}
