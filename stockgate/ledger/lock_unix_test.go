//go:build unix

package ledger

import (
	"os/exec"
	"sync"
	"sync/atomic"
	"testing"
)

// A process that forks children has the journal's file in each of them until it executes its program. Who returns to a
// journal that was closed finds it free all the same.
func TestJournal_IsFreeOnceClosedWhileChildrenAreForked(t *testing.T) {
	program, err := exec.LookPath("true")
	if err != nil {
		t.Skip("no program to execute")
	}
	var end atomic.Bool
	var forks sync.WaitGroup
	defer forks.Wait()
	defer end.Store(true)
	for range 2 {
		forks.Go(func() {
			for !end.Load() {
				_ = exec.Command(program).Run()
			}
		})
	}
	dir := t.TempDir()
	first := beginLife(t, dir, "first", 100)
	folder := first.j.dir
	for i := range 500 {
		if err := first.j.Close(false); err != nil {
			t.Fatal(err)
		}
		if first = beginLife(t, dir, "another", 100); first.j.dir != folder {
			t.Fatalf("life %d is in another folder: the lock was still held", i)
		}
	}
	if err := first.j.Close(false); err != nil {
		t.Fatal(err)
	}
}
