package redistest

import (
	"context"
	"testing"

	"sluice/internal/testkit"
)

func TestRedistest_KilledServerIsBackOnTheSameAddressAfterRestart(t *testing.T) {
	s := Start(t)
	ctx := context.Background()
	if err := s.Client.Set(ctx, "k", 1, 0).Err(); err != nil {
		t.Fatal(err)
	}
	if n := s.Calls("set"); n != 1 {
		t.Fatalf("calls of SET = %d, want 1", n)
	}
	s.Kill()
	if err := s.Client.Ping(ctx).Err(); err == nil {
		t.Fatal("a killed server answered")
	}
	s.Restart()
	testkit.Eventually(t, "it answers", func() bool { return s.Client.Ping(ctx).Err() == nil })
	if n := s.Client.Exists(ctx, "k").Val(); n != 0 {
		t.Fatal("a restarted server remembers")
	}
}
