package admin

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

func TestRequestSlots_FewRequestsAtATimeReachTheStore(t *testing.T) {
	var inside, most atomic.Int64
	here, gate := make(chan bool), make(chan bool)
	h := newRequestSlots().handler(byItself(func(http.ResponseWriter, *http.Request) {
		n := inside.Add(1)
		for m := most.Load(); n > m && !most.CompareAndSwap(m, n); m = most.Load() {
		}
		here <- true
		<-gate
		inside.Add(-1)
	})).serve
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

// slowLine is a body of which nothing comes for a long time.
type slowLine struct{ asked, come chan bool }

func (s slowLine) Read([]byte) (int, error) {
	s.asked <- true
	<-s.come
	return 0, io.EOF
}

func TestRequestSlots_SlowRequestKeepsNoOtherWaiting(t *testing.T) {
	h := newRequestSlots().handler(byItself(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.ReadAll(r.Body)
	})).serve
	slow := slowLine{make(chan bool), make(chan bool)}
	var crowd sync.WaitGroup
	for range atOnce {
		crowd.Go(func() { h(httptest.NewRecorder(), httptest.NewRequest(http.MethodPost, "/", slow)) })
		<-slow.asked
	}
	w := httptest.NewRecorder()
	h(w, httptest.NewRequest(http.MethodPost, "/", strings.NewReader("{}")))
	if w.Code != http.StatusOK {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	go func() { // what read an end reads it again
		for range slow.asked {
		}
	}()
	close(slow.come)
	crowd.Wait()
	close(slow.asked)
}

func TestRequestSlots_BodyArrivesWhole(t *testing.T) {
	for _, n := range []int{0, 1, maxBody - 1, maxBody, maxBody + 1, 3 * maxBody} {
		text := strings.Repeat("x", n)
		newRequestSlots().handler(byItself(func(_ http.ResponseWriter, r *http.Request) {
			if got, err := io.ReadAll(r.Body); err != nil || string(got) != text {
				t.Errorf("%d bytes of %d, %v", len(got), n, err)
			}
		})).serve(httptest.NewRecorder(), httptest.NewRequest(http.MethodPost, "/", strings.NewReader(text)))
	}
}
