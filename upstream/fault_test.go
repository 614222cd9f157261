package upstream

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"

	"sluice/internal/testkit"
)

// stuckLog is a slog.Handler whose first line waits for release.
type stuckLog struct {
	slog.Handler
	stuck, release chan struct{}
	first          *atomic.Bool
}

func (s stuckLog) Enabled(context.Context, slog.Level) bool { return true }

func (s stuckLog) Handle(context.Context, slog.Record) error {
	if !s.first.Swap(true) {
		close(s.stuck)
		<-s.release
	}
	return nil
}

// Of the requests that fail while a log accepts nothing, only the one that logs waits.
func TestFault_StuckLogDelaysNoOtherRequest(t *testing.T) {
	broken := newRawServer(t, func(v *visit) {
		if _, _, err := v.request(); err == nil {
			v.reply("x\r\n\r\n")
		}
	})
	for name, tt := range map[string]struct {
		target string
		want   Outcome
	}{"no connection": {closedPort(t), NotSent}, "no usable response": {broken.url(), Broken}} {
		t.Run(name, func(t *testing.T) {
			log := stuckLog{slog.DiscardHandler, make(chan struct{}), make(chan struct{}), new(atomic.Bool)}
			o := options(tt.target)
			o.Logger = slog.New(log)
			p := newPool(t, o)
			var all sync.WaitGroup
			defer all.Wait()
			defer close(log.release)
			var ended atomic.Int32
			send := func() {
				if outcome, _ := sendOrder(p, "POST", "/"); outcome != tt.want {
					t.Errorf("outcome %v, want %v", outcome, tt.want)
				}
				ended.Add(1)
			}
			all.Go(send)
			<-log.stuck
			all.Go(send)
			testkit.Eventually(t, "the second request ends", func() bool { return ended.Load() == 1 })
		})
	}
}
