package storetest

import (
	"testing"
	"time"

	"sluice/stockgate/redisconn"
)

// Redis are the options of connections to a redis-server. No breaker opens: a test waits rather than fail at once.
func Redis(address string) redisconn.Options {
	return redisconn.Options{Addresses: []string{address}, PoolSize: 4, ConnectTimeout: 5 * time.Second,
		Timeout: 5 * time.Second, BreakerErrors: redisconn.Unbroken, BreakerPause: time.Second}
}

// Link is a client of a redis-server, until the test ends.
func Link(t testing.TB, address string) *redisconn.Client {
	t.Helper()
	link, err := redisconn.New(Redis(address))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = link.Close() })
	return link
}
