//go:build linux && !noeventloop

package eventloop

import (
	"testing"
	"testing/synctest"
)

// An idle worker leads next, and ends when the pool closes.
func TestWorkers_IdleWorkerLeadsNext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hold, served := make(chan struct{}), make(map[uint64]int)
		w := &workers{work: func(l leadership) { served[l.number]++; <-hold }}
		w.assign(leadership{number: 1})
		synctest.Wait()
		w.assign(leadership{number: 2}) // the first worker is busy
		synctest.Wait()
		if served[1] != 1 || served[2] != 1 {
			t.Fatalf("served %v", served)
		}
		close(hold)
		synctest.Wait()
		if len(w.idle) != 2 {
			t.Fatalf("%d workers are idle, want 2", len(w.idle))
		}
		w.assign(leadership{number: 1})
		synctest.Wait()
		if served[1] != 2 || len(w.idle) != 2 {
			t.Errorf("served %d times; %d workers are idle: a new one was started", served[1], len(w.idle))
		}
		w.close()
		w.assign(leadership{number: 2}) // after close a worker still serves, and ends
		synctest.Wait()
		if served[2] != 2 || len(w.idle) != 0 {
			t.Errorf("served %d times after close, %d workers are idle", served[2], len(w.idle))
		}
	}) // which fails when a goroutine is left
}

// A burst leaves no more goroutines behind than the bound.
func TestWorkers_IdleWorkersAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hold := make(chan struct{})
		w := &workers{work: func(leadership) { <-hold }}
		for range maxIdleWorkers + 100 {
			w.assign(leadership{})
		}
		close(hold)
		synctest.Wait()
		if len(w.idle) != maxIdleWorkers {
			t.Errorf("%d workers are idle, want %d", len(w.idle), maxIdleWorkers)
		}
		w.close()
	})
}
