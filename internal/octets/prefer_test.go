package octets

import (
	"testing"
	"time"
)

func TestPreferredWait_IsBounded(t *testing.T) {
	for prefer, want := range map[string]time.Duration{
		"": 0, "wait=5": 5 * time.Second, "respond-async, wait=5": 5 * time.Second, "wait=5; x=1": 5 * time.Second,
		"wait=21": 20 * time.Second, "wait=65536": 0, "wait=-1": 0, "wait=": 0, "wait": 0, "awaits=5": 0, "wait=1.5": 0,
	} {
		if got := PreferredWait([]byte(prefer), 20*time.Second); got != want {
			t.Errorf("%q: %v, want %v", prefer, got, want)
		}
	}
}
