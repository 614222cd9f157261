package settle

import (
	"testing"

	"github.com/redis/go-redis/v9"

	"sluice/internal/redistest"
	"sluice/internal/storetest"
	"sluice/stockgate/redisconn"
)

// What Redis rejects is an error of Redis, by which a cluster is asked elsewhere and the breaker stays closed.
func TestStreamEntries_ErrorOfRedisStaysOne(t *testing.T) {
	server := redistest.Start(t)
	client := storetest.Link(t, server.Addr)
	if err := server.Client.Set(t.Context(), "sluice:shop:{1001}:q", "text", 0).Err(); err != nil {
		t.Fatal(err)
	}
	stream := Stream{Name: "shop", Redis: client}
	if _, err := stream.Entries(t.Context(), "1001", Position{}, 10); !redis.HasErrorPrefix(err, "WRONGTYPE") {
		t.Errorf("a key that is no stream: %v, want WRONGTYPE by Redis", err)
	}
	if entries, err := stream.Entries(t.Context(), "1002", Position{}, 10); err != nil || len(entries) != 0 {
		t.Errorf("a key that is not there: %v, %v", entries, err)
	}
}

func TestRejection_NamesTheServerThatHasTheKey(t *testing.T) {
	if to, ok := redis.IsMovedError(rejection("MOVED 7 127.0.0.1:7002")); !ok ||
		to != "127.0.0.1:7002" {
		t.Errorf("%v, %q", ok, to)
	}
	if !redisconn.Redirected(rejection("ASK 7 127.0.0.1:7002")) {
		t.Error("ASK is not seen")
	}
}
