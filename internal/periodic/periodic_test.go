package periodic

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

func TestNowAndAfter_CallAtTheirTimesUntilTheContextEnds(t *testing.T) {
	for name, c := range map[string]struct {
		run  func(context.Context, time.Duration, func(context.Context))
		want []time.Duration
	}{
		"now":   {Now, []time.Duration{0, 10 * time.Second, 20 * time.Second, 40 * time.Second}},
		"after": {After, []time.Duration{10 * time.Second, 20 * time.Second, 40 * time.Second}},
	} {
		synctest.Test(t, func(t *testing.T) {
			began, called := time.Now(), []time.Duration(nil)
			ctx, stop := context.WithCancel(t.Context())
			c.run(ctx, 10*time.Second, func(context.Context) {
				switch at := time.Since(began); {
				case at == 20*time.Second: // a slow call: the tick at 30 s waits for its end, the one at 40 s is another
					called = append(called, at)
					time.Sleep(20 * time.Second) // of synctest
				case at >= 40*time.Second:
					called = append(called, at)
					stop()
				default:
					called = append(called, at)
				}
			})
			if !slices.Equal(called, c.want) {
				t.Errorf("%s: called after %v, want %v", name, called, c.want)
			}
		})
	}
}
