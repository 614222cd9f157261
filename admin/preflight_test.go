package admin

import (
	"context"
	"encoding/json"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// However many ask, one check runs, and all hear of it.
func TestPreflight_RunsOnceForAllWhoAsk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		runs := 0
		p := NewPreflight(func(context.Context) []Finding {
			runs++
			time.Sleep(2 * time.Second) // of synctest
			return []Finding{{"ok", "gate", "ready"}, {"fail", "redis", "away"}}
		})
		var all sync.WaitGroup
		for range 20 {
			all.Go(func() {
				if done, ok := p.run(t.Context()); !ok || done.OK || len(done.Findings) != 2 {
					t.Errorf("%+v %v", done, ok)
				}
			})
		}
		all.Wait()
		if runs != 1 {
			t.Errorf("%d checks ran", runs)
		}
		time.Sleep(preflightFresh) // of synctest
		if _, ok := p.run(t.Context()); !ok || runs != 2 {
			t.Errorf("later: %v, %d checks", ok, runs)
		}
	})
}

// What was cut short tells nothing, and is not kept for the next one.
func TestPreflight_ThatIsCutShortIsNoAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow := true
		p := NewPreflight(func(ctx context.Context) []Finding {
			if slow {
				<-ctx.Done()
			}
			return []Finding{}
		})
		a := &API{Preflight: p, Log: slog.New(slog.DiscardHandler)}
		h := a.Handler()
		if w := ask(h, "GET", "/api/v1/preflight", "", nil); w.Code != 503 || w.Header().Get("Retry-After") == "" {
			t.Errorf("%d %s", w.Code, w.Body)
		}
		slow = false
		w := ask(h, "GET", "/api/v1/preflight", "", nil)
		var done preflightResult
		if err := json.Unmarshal(w.Body.Bytes(), &done); err != nil || !done.OK {
			t.Errorf("%d %s", w.Code, w.Body)
		}
	})
}
