package ledger

import (
	"testing"
	"time"
)

// until waits for what a real server does in its own time.
func until(t testing.TB, what string, is func() bool) {
	t.Helper()
	for range 30_000 {
		if is() {
			return
		}
		time.Sleep(time.Millisecond)
	}
	t.Fatalf("never: %s", what)
}
