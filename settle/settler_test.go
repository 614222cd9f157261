package settle

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/redis/go-redis/v9"

	"sluice/internal/redistest"
	"sluice/internal/storetest"
	"sluice/stockgate/redisconn"
)

func TestMain(m *testing.M) { redistest.Main(m) }

// SKUs that are too many are named by log, metrics and alert.
func TestSettler_TellsOfSKUsThatItDoesNotSettle(t *testing.T) {
	server := redistest.Start(t)
	client := storetest.Link(t, server.Addr)
	names := make([]redis.Z, maxSKUs+2)
	for i := range names {
		names[i].Member = fmt.Sprintf("%06d", i)
	}
	if err := server.Client.ZAdd(t.Context(), "sluice:shop:skus", names...).Err(); err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	s, err := New(Stream{Name: "shop", Redis: client}, nil, Options{Batch: 1, Log: slog.New(slog.NewTextHandler(&log,
		nil))})
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
	server.Client.ZRem(t.Context(), "sluice:shop:skus", names[0].Member, names[1].Member)
	s.list(t.Context(), places)
	s.sumUp(places)
	if s.counts.unlisted.Load() != 0 || s.counts.behindSince.Load() != 0 {
		t.Error("SKUs are named that are settled")
	}
}

// However often a SKU changes, and however soon others are due, its changes are gathered between two turns.
// Every home reads a SKU whose home is not known. The fault is over for those that do not settle it.
func TestSettler_FaultOfASKUThatIsSettledElsewhereIsOver(t *testing.T) {
	s, err := New(Stream{}, nil, Options{Batch: 1, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	p := &skuCursor{sku: "1001"}
	places := map[string]*skuCursor{"1001": p, "1002": {sku: "1002"}}
	s.end(t.Context(), p, false, errors.New("redis hangs"))
	s.sumUp(places)
	if text := s.Failing(); text != `changes of "1001" stay in Redis: redis hangs` {
		t.Error(text)
	}
	s.end(t.Context(), p, false, ErrElsewhere)
	s.sumUp(places)
	if text := s.Failing(); text != "" {
		t.Error(text)
	}
}

func TestSettler_SKUThatChangesRestsBetweenTwoTurns(t *testing.T) {
	now := time.Now()
	s := &Settler{now: func() time.Time { return now }, log: slog.New(slog.DiscardHandler)}
	p := &skuCursor{sku: "hot"}
	places := map[string]*skuCursor{p.sku: p}
	wake(places, p.sku)
	if p.due.After(now) {
		t.Errorf("its first turn is in %s, want at once", p.due.Sub(now))
	}
	for _, worked := range []bool{true, false, false, false} {
		s.end(t.Context(), p, worked, nil)
		wake(places, p.sku)
		if rest := p.due.Sub(now); rest != minPoll {
			t.Errorf("after a turn (it worked: %v) it rests for %s, want %s", worked, rest, minPoll)
		}
	}
	s.end(t.Context(), p, false, &PostponedError{Wait: time.Minute, Err: errors.New("it asks to wait")})
	wake(places, p.sku)
	if wait := p.due.Sub(now); wait != time.Minute {
		t.Errorf("its target is tried in %s, want a minute", wait)
	}
}

// A settler that is restarted each day, and verifies once a day, would never verify if the first pass had to wait.
func TestSettler_VerifiesAllSKUsSoonAfterItsStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, err := redisconn.New(redisconn.Options{ // there is none: a pass ends all the same
			Topology: redisconn.Single, Addresses: []string{"127.0.0.1:1"}, PoolSize: 1, ConnectTimeout: time.Second,
			Timeout: time.Second, BreakerErrors: redisconn.Unbroken, BreakerPause: time.Second,
		})
		if err != nil {
			t.Fatal(err)
		}
		defer func() {
			client.Close()
			time.Sleep(time.Minute) // until it dials no more
		}()
		s, err := New(Stream{Name: "shop", Redis: client}, nil,
			Options{Batch: 1, Verify: 24 * time.Hour, Log: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(t.Context())
		var verifying sync.WaitGroup
		verifying.Go(func() { s.verifyAll(ctx) })
		defer verifying.Wait()
		defer stop()
		const first = -1
		s.counts.unverified.Store(first)
		time.Sleep(2 * time.Minute) // of synctest
		synctest.Wait()
		if s.counts.unverified.Load() == first {
			t.Error("the pass of frozen ledgers has not ended in two minutes")
		}
	})
}
