package e2e

import (
	"net/http"

	"github.com/redis/go-redis/v9"

	"sluice/internal/redistest"
)

// key holds the stock of SKU 1001 in the default layout.
const key = "seckill:stock:1001"

// redisAt names a Redis to a gate that has patience with it: on a busy machine any answer may be late.
func redisAt(s *redistest.Server) string {
	return usualRedisAt(s) + "\nstock.redis.timeout = \"1s\""
}

// patientTable is the patience of redisAt for a file that has the table [stock]: it stands at its end.
const patientTable = "\n[stock.redis]\ntimeout = \"1s\"\n"

// usualRedisAt is redisAt with the patience that gates have by default, or that the test chooses: there Redis hangs.
func usualRedisAt(s *redistest.Server) string {
	return "name = \"shop\"\nstock.source = \"redis\"\nstock.redis.addresses = " + quoted(s.Addr)
}

// unlimited lifts what one connection may ask, for tests in which few connections stand for many shoppers.
const unlimited = `limits.connection.request_rate = "1000000/s"
limits.connection.request_burst = 1000000`

// boundless has a few clients be a crowd.
const boundless = unlimited + `
limits.connection.max_connections_per_ip = 12000
limits.window.max_per_sku = 0
limits.concurrency.max_in_flight = 2000
upstream.max_conns = 2000`

// sells is a shop that takes the stock itself, out of the key that the gate reads.
func sells(stock *redis.Client) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		left, err := stock.Decr(r.Context(), key).Result()
		switch {
		case err != nil:
			w.WriteHeader(http.StatusInternalServerError)
		case left < 0:
			stock.Incr(r.Context(), key)
			w.WriteHeader(http.StatusConflict)
		}
	}
}
