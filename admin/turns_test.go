package admin

import (
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
)

func TestFewRequestsAtATimeReachTheStore(t *testing.T) {
	var inside, most atomic.Int64
	here, gate := make(chan bool), make(chan bool)
	h := newTurns().handler(func(http.ResponseWriter, *http.Request) {
		n := inside.Add(1)
		for m := most.Load(); n > m && !most.CompareAndSwap(m, n); m = most.Load() {
		}
		here <- true
		<-gate
		inside.Add(-1)
	})
	const all = 10 * atOnce
	var crowd sync.WaitGroup
	for range all {
		crowd.Go(func() {
			w := httptest.NewRecorder()
			h(w, httptest.NewRequest(http.MethodGet, "/", nil))
			if w.Code != http.StatusOK {
				t.Errorf("%d %s", w.Code, w.Body)
			}
		})
	}
	for range atOnce {
		<-here
	}
	for range all - atOnce {
		gate <- true
		<-here
	}
	for range atOnce {
		gate <- true
	}
	crowd.Wait()
	if most.Load() != atOnce {
		t.Errorf("%d at once, want %d", most.Load(), atOnce)
	}
}
