package redisconn

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"sluice/internal/redistest"
	"sluice/internal/testkit"
)

func TestUnsent_OnlyWhatWasCertainlyNotSentIsUnsent(t *testing.T) {
	server := redistest.Start(t)
	l := openMany(t, server, 100*time.Millisecond, 1)
	hang := func(ctx context.Context, c Commands) error {
		ctx, cancel := context.WithTimeout(ctx, 2*time.Second) // also on a busy machine it is sent within that
		defer cancel()
		return c.Ping(ctx).Err()
	}
	if err := ping(t, l); err != nil || Unsent(err) {
		t.Fatalf("answered: %v", err)
	}
	server.Client.ConfigSet(t.Context(), "busy-reply-threshold", "1")
	ended := make(chan error)
	go func() { ended <- server.Client.Eval(context.Background(), "while true do end", nil).Err() }()
	testkit.Eventually(t, "busy", func() bool {
		err := ping(t, l)
		return redis.HasErrorPrefix(err, "BUSY") && Unsent(err)
	})
	testkit.Eventually(t, "free", func() bool {
		server.Client.ScriptKill(t.Context())
		return ping(t, l) == nil
	})
	<-ended
	server.Pause()
	if err := l.Do(t.Context(), hang, always); err == nil || Unsent(err) {
		t.Errorf("not answered: %v", err)
	}
	server.Resume()
	server.Kill()
	testkit.Eventually(t, "rejected", func() bool {
		err := ping(t, l)
		return Unsent(err) && !errors.Is(err, ErrBreakerOpen)
	})
	testkit.Eventually(t, "left alone", func() bool {
		err := ping(t, l)
		return errors.Is(err, ErrBreakerOpen) && Unsent(err)
	})
}
