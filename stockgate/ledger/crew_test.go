package ledger

import (
	"testing"
	"testing/synctest"
)

// busy gives w n jobs at once, and returns when all are done.
func busy(w *crew, n int) {
	hold := make(chan struct{})
	for range n {
		w.do(func() { <-hold })
	}
	synctest.Wait()
	close(hold)
	synctest.Wait()
}

// Who has done a job does the next one, and ends when nobody has needed it for a while.
func TestCrewWorksWithWhoIsFreeAndKeepsNobodyForNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &crew{}
		free := func(when string, n int) {
			t.Helper()
			if synctest.Wait(); len(w.free) != n {
				t.Fatalf("%s: %d are free, want %d", when, len(w.free), n)
			}
		}
		busy(w, 5)
		free("after a rush", 5)
		busy(w, 2)
		free("after two more jobs", 5)
		w.tire()
		free("all were needed", 5)
		busy(w, 2)
		w.tire()
		free("two were needed", 2)
		w.tire()
		free("nobody was", 0)
		busy(w, 1)
		w.dismiss()
		free("at the end", 0)
		busy(w, 1)
		free("after its end it still works, and nobody stays", 0)
	}) // which fails when a goroutine is left
}

// A rush leaves no more goroutines behind than the bound.
func TestCrewKeepsNoMoreThanItsBound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &crew{}
		busy(w, mostFree+100)
		if len(w.free) != mostFree {
			t.Errorf("%d are free, want %d", len(w.free), mostFree)
		}
		w.dismiss()
	})
}

// Whoever ends a crew waits for those who are at work, and for what these begin.
func TestCrewEndsWithItsWork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, hold, last, ended := &crew{}, make(chan struct{}), make(chan struct{}), false
		w.do(func() {
			<-hold
			w.do(func() { <-last })
		})
		go func() { w.dismiss(); ended = true }()
		synctest.Wait()
		close(hold)
		synctest.Wait()
		if ended {
			t.Error("it has ended before its work")
		}
		close(last)
		synctest.Wait()
		if !ended {
			t.Error("it does not end")
		}
	})
}
