package settle

import (
	"bytes"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/redis/go-redis/v9"

	"sluice/internal/redistest"
	"sluice/stockgate/redisconn"
)

func TestMain(m *testing.M) { redistest.Main(m) }

// SKUs that are too many are named by log, metrics and alert.
func TestSettler_TellsOfSKUsThatItDoesNotSettle(t *testing.T) {
	server := redistest.Start(t)
	client, err := redisconn.New(redisconn.Options{
		Addresses: []string{server.Addr}, PoolSize: 1, ConnectTimeout: 5 * time.Second, Timeout: 5 * time.Second,
		BreakerErrors: redisconn.Unbroken, BreakerPause: time.Second,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close() })
	names := make([]redis.Z, maxSKUs+2)
	for i := range names {
		names[i].Member = fmt.Sprintf("%06d", i)
	}
	if err := server.Client.ZAdd(t.Context(), "sluice:skus", names...).Err(); err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	s, err := New(Stream{Redis: client}, nil, Options{Batch: 1, Log: slog.New(slog.NewTextHandler(&log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	places := make(map[string]*skuCursor)
	for range 2 {
		s.list(t.Context(), places)
	}
	s.sumUp(places)
	if text := log.String(); len(places) != maxSKUs || strings.Count(text, "not_settled=2") != 1 {
		t.Errorf("%d SKUs are settled; log %q: want %d, and one line that tells of 2", len(places), text, maxSKUs)
	}
	if s.counts.behindSince.Load() == 0 {
		t.Error("SKUs that are not settled are not behind")
	}
	registry := prometheus.NewRegistry()
	registry.MustRegister(s)
	families, err := registry.Gather()
	if text := fmt.Sprint(families); err != nil || !strings.Contains(text, "sluice_settler_unsettled_skus") ||
		!strings.Contains(text, "gauge:{value:2}") {
		t.Errorf("%s, %v: want sluice_settler_unsettled_skus 2", text, err)
	}
	server.Client.ZRem(t.Context(), "sluice:skus", names[0].Member, names[1].Member)
	s.list(t.Context(), places)
	s.sumUp(places)
	if s.counts.unlisted.Load() != 0 || s.counts.behindSince.Load() != 0 {
		t.Error("SKUs are named that are settled")
	}
}
