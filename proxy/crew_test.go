package proxy

import (
	"testing"
	"testing/synctest"
)

// Who has served a connection serves the next one that wakes up, and ends when nobody is to stay.
func TestCrewServesWithWhoIsFree(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hold, served := make(chan struct{}), make(map[*Conn]int)
		w := &crew{work: func(j job) { served[j.conn]++; <-hold }}
		first, second := new(Conn), new(Conn)
		w.do(job{conn: first})
		synctest.Wait()
		w.do(job{conn: second}) // the first is busy
		synctest.Wait()
		if served[first] != 1 || served[second] != 1 {
			t.Fatalf("served %v", served)
		}
		close(hold)
		synctest.Wait()
		if len(w.free) != 2 {
			t.Fatalf("%d are free, want both", len(w.free))
		}
		w.do(job{conn: first})
		synctest.Wait()
		if served[first] != 2 || len(w.free) != 2 {
			t.Errorf("served %d times; %d are free: somebody new was taken on", served[first], len(w.free))
		}
		w.dismiss()
		w.do(job{conn: second}) // after its end it still serves, and nobody stays
		synctest.Wait()
		if served[second] != 2 || len(w.free) != 0 {
			t.Errorf("served %d times after the end, %d are free", served[second], len(w.free))
		}
	}) // which fails when a goroutine is left
}

// A flood leaves no more goroutines behind than the bound.
func TestCrewKeepsNoMoreThanItsBound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hold := make(chan struct{})
		w := &crew{work: func(job) { <-hold }}
		for range mostFree + 100 {
			w.do(job{conn: new(Conn)})
		}
		close(hold)
		synctest.Wait()
		if len(w.free) != mostFree {
			t.Errorf("%d are free, want %d", len(w.free), mostFree)
		}
		w.dismiss()
	})
}
