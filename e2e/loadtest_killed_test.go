package e2e

import (
	"fmt"
	"os/exec"
	"testing"
	"time"

	"sluice/internal/redistest"
)

// A load test that is killed removes nothing; each key that it had for a moment ends by itself. The upstream works on
// the orders until then, so no key is made shortly before the end.
func TestLoadTest_KeysOfAKilledOneEndByThemselves(t *testing.T) {
	t.Parallel()
	redis := redistest.Start(t)
	path := file(t, "upstream = { targets = [\"http://127.0.0.1:1\"], response_header_timeout = \"5m\", timeout = "+
		"\"5m\" }\n"+redisAt(redis)+"\n"+reserveRoutes)
	const buyers = 20
	cmd := exec.Command(binary, "loadtest", "--config", path, "--buyers", fmt.Sprint(buyers), "--stock", "400", "--over",
		"10ms", "--patience", "5m", "--shop-latency", "5m")
	cmd.Env = surroundings()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	ends := func() (n int) { // keys; 0 = one has no end
		keys := redis.Client.Keys(t.Context(), "*").Val()
		for _, key := range keys {
			if left := redis.Client.TTL(t.Context(), key).Val(); left == -1 || left > 10*time.Minute {
				return 0
			}
		}
		return len(keys)
	}
	held := func() bool {
		for _, key := range redis.Client.Keys(t.Context(), "sluice:loadtest-*:{loadtest-*}:s").Val() {
			return redis.Client.HGet(t.Context(), key, "held").Val() == fmt.Sprint(buyers)
		}
		return false
	}
	soon(t, "the upstream works on all orders", held)
	soon(t, "all keys end by themselves", func() bool { return ends() > 0 })
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // it was killed
	if keys := redis.Client.Keys(t.Context(), "*").Val(); ends() == 0 {
		t.Errorf("of the keys %q some do not end", keys)
	}
}
