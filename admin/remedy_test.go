package admin

import (
	"strings"
	"testing"
)

func TestRemedy_SaysWhatToDoAboutRedis(t *testing.T) {
	for fault, want := range map[string]string{
		`look at "1001": ask 127.0.0.1:1: dial tcp 127.0.0.1:1: connect: connection refused`: "correct stock.redis.addresses",
		`list skus: ask 127.0.0.1:1: i/o timeout`:                                            "stock.redis.timeout",
		`list skus: ask 127.0.0.1:1: write: broken pipe`:                                     "maxclients",
		`read "stock:77": WRONGTYPE Operation against a key`:                                 "sluice check --online --sku",
		`settle "k-2": the shop says no`:                                                     "",
	} {
		if got := remedy(fault); !strings.Contains(got, want) || want == "" && got != "" {
			t.Errorf("%s: %q, want %q", fault, got, want)
		}
	}
}
