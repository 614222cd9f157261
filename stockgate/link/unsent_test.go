package link

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"sluice/internal/redistest"
)

func TestOnlyWhatWasCertainlyNotSentIsUnsent(t *testing.T) {
	server := redistest.Start(t)
	l := openMany(t, server, time.Hour, 1)
	hang := func(ctx context.Context, c *redis.Client) error {
		ctx, cancel := context.WithTimeout(ctx, 50*time.Millisecond)
		defer cancel()
		return c.Ping(ctx).Err()
	}
	if err := ping(t, l); err != nil || Unsent(err) {
		t.Fatalf("answered: %v", err)
	}
	if err := server.Client.Do(t.Context(), "acl", "setuser", "default", "-ping").Err(); err != nil {
		t.Fatal(err)
	}
	if err := ping(t, l); err == nil || !Unsent(err) {
		t.Errorf("denied: %v", err)
	}
	if err := server.Client.Do(t.Context(), "acl", "setuser", "default", "+ping").Err(); err != nil {
		t.Fatal(err)
	}
	server.Pause()
	if err := l.Do(t.Context(), hang, always); err == nil || Unsent(err) {
		t.Errorf("not answered: %v", err)
	}
	server.Resume()
	server.Kill()
	eventually(t, "refused", func() bool {
		err := ping(t, l)
		return Unsent(err) && !errors.Is(err, ErrLeftAlone)
	})
	eventually(t, "left alone", func() bool { err := ping(t, l); return errors.Is(err, ErrLeftAlone) && Unsent(err) })
}
