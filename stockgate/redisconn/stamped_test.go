package redisconn

import (
	"context"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"sluice/internal/redistest"
	"sluice/internal/testkit"
)

// Whom Redis does not let in has no answers, and no command of a pipeline must seem to have one.
func TestStamped_PipelineWithoutAnAdmittedCallHasNoAnswers(t *testing.T) {
	s := redistest.Start(t)
	rule := func(args ...any) {
		t.Helper()
		if err := s.Client.Do(t.Context(), args...).Err(); err != nil {
			t.Fatal(err)
		}
	}
	rule("acl", "setuser", "app", "on", ">word", "~*", "+@all")
	l, err := New(Options{
		Addresses: []string{s.Addr}, PoolSize: 2, ConnectTimeout: 5 * time.Second, Timeout: 5 * time.Second,
		BreakerErrors: Unbroken, BreakerPause: time.Second, Username: "app", Password: func() string { return "word" },
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	if err := ping(t, l); err != nil {
		t.Fatal(err)
	}
	rule("acl", "setuser", "app", "resetpass", ">another")
	rule("client", "kill", "user", "app")
	testkit.Eventually(t, "the end of the old connections is noticed", func() bool {
		err := ping(t, l)
		if err == nil {
			t.Fatal("a Redis that rejects the login has answered")
		}
		return redis.HasErrorPrefix(err, "WRONGPASS")
	})
	for _, asking := range []bool{false, true} {
		client, ctx := only(l).session.Load().client, context.Background()
		if asking {
			ctx = context.WithValue(ctx, askFirst{}, true)
		}
		for name, pipe := range map[string]redis.Pipeliner{"pipeline": client.Pipeline(),
			"transaction": client.TxPipeline()} {
			length, set := pipe.LLen(t.Context(), "list"), pipe.Set(t.Context(), "key", 1, 0)
			_, err := pipe.Exec(ctx)
			for _, err := range []error{err, length.Err(), set.Err()} {
				if !redis.HasErrorPrefix(err, "WRONGPASS") || !Unsent(err) {
					t.Errorf("%s, asking %v: %v", name, asking, err)
				}
			}
		}
	}
}
