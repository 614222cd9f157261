package redisconn

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// A slow Redis is lost and found many times in a second; the log names that once in ten.
func TestBeats_SlowRedisDoesNotFloodTheLog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var text strings.Builder
		b := NewBeats(slog.New(slog.NewTextHandler(&text, nil)), "cannot reach Redis; x", "found")
		for range 24 {
			b.Record(context.DeadlineExceeded)
			b.Record(nil)
			time.Sleep(500 * time.Millisecond) // of synctest
		}
		late := "Redis answers later than stock.redis.timeout; x"
		if n := strings.Count(text.String(), late); n != 2 || strings.Count(text.String(), "msg=found") != 2 ||
			!strings.Contains(text.String(), "losses=20") || !strings.Contains(text.String(), "look at its load") {
			t.Errorf("%d losses are named:\n%s", n, text.String())
		}
		text.Reset()
		b.Record(errors.New("refused")) // too early to be named
		time.Sleep(lossEvery)           // of synctest
		b.Record(errors.New("refused"))
		if n := strings.Count(text.String(), "cannot reach Redis; x"); n != 1 {
			t.Errorf("an outage that lasts is named %d times:\n%s", n, text.String())
		}
	})
}
