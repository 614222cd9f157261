package redisconn

import (
	"strconv"
	"testing"

	"sluice/internal/redistest"
)

func TestTag_GivesTheSlotThatRedisSays(t *testing.T) {
	if n := redistest.Slot(Tag("123456789")); n != 0x31c3 { // the specification's own example
		t.Fatalf("slot %d", n)
	}
	server := redistest.Start(t, "--cluster-enabled", "yes")
	keys := []string{"", "a", "{a}b", "x{a}b", "{}a", "{a", "a}", "{{a}}b", "a{b}{c}", "\x00\xff{\xfe}", "库存:{商品}:s",
		"}{a}", "{ }"}
	for i := range 200 {
		keys = append(keys, "seckill:stock:"+strconv.Itoa(i*i))
	}
	for _, key := range keys {
		n, err := server.Client.ClusterKeySlot(t.Context(), key).Result()
		if err != nil {
			t.Fatal(err)
		}
		if redistest.Slot(Tag(key)) != int(n) {
			t.Errorf("%q: %d, and Redis says %d", key, redistest.Slot(Tag(key)), n)
		}
	}
}
