package batch_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"sluice/internal/batch"
)

// ask asks c n questions, 1 and up, while a call with the question 0 is under way, and counts the errors by their text.
func ask(t *testing.T, c *batch.Calls[int, int], n int) (errs map[string]int) {
	t.Helper()
	errs = map[string]int{}
	var mu sync.Mutex
	var all sync.WaitGroup
	for i := range n + 1 {
		all.Go(func() {
			out, err := c.Do(t.Context(), "1", i)
			if err == nil && out != 2*i {
				t.Errorf("%d: %d", i, out)
			}
			if err != nil {
				mu.Lock()
				defer mu.Unlock()
				errs[err.Error()]++
			}
		})
		if i == 0 {
			synctest.Wait()
		}
	}
	all.Wait()
	c.Wait()
	return errs
}

// doubling doubles numbers, a millisecond each call; a call with the question 0 fails where fail is true.
func doubling(calls *[][]int, fail bool) func(string, []int) ([]int, error) {
	return func(_ string, in []int) (out []int, err error) {
		*calls = append(*calls, in)
		time.Sleep(time.Millisecond) // of virtual time: how long a call takes
		if fail && in[0] == 0 {
			return nil, errors.New("away")
		}
		for _, n := range in {
			out = append(out, 2*n)
		}
		return out, nil
	}
}

// A call that fails fails for all of it, and what came later is asked anew.
func TestCalls_OneAtATimeAndTheRestTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var calls [][]int
		c := batch.Calls[int, int]{Call: doubling(&calls, true), Most: 256}
		errs := ask(t, &c, 299)
		if len(calls) != 3 || len(calls[0]) != 1 || len(calls[1]) != 256 || len(errs) != 1 || errs["away"] != 1 {
			t.Errorf("%d calls, %v", len(calls), errs)
		}
	})
}

func TestCalls_FailureFailsAllThatWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var calls [][]int
		c := batch.Calls[int, int]{Call: doubling(&calls, true), Most: 20, FailTogether: true}
		if errs := ask(t, &c, 50); len(calls) != 1 || errs["away"] != 51 {
			t.Errorf("%d calls, %v", len(calls), errs)
		}
		if out, err := c.Do(t.Context(), "1", 7); out != 14 || err != nil {
			t.Errorf("afterwards: %d, %v", out, err)
		}
	})
}

func TestCalls_QuestionsThatWaitAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var calls [][]int
		c := batch.Calls[int, int]{Call: doubling(&calls, false), Most: 20, MaxWaiting: 30}
		errs := ask(t, &c, 50)
		if len(calls) != 3 || errs[batch.ErrFull.Error()] != 20 {
			t.Errorf("%d calls, %v", len(calls), errs)
		}
		if errs := ask(t, &c, 30); len(errs) != 0 {
			t.Errorf("what was asked counts for ever: %v", errs)
		}
	})
}

func TestCalls_QuestionGoesWithACallThatBeginsLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var calls [][]int
		c := batch.Calls[int, int]{Call: doubling(&calls, false), Most: 20}
		go c.Do(t.Context(), "1", 7)
		synctest.Wait() // that call is under way
		if out, err := c.Do(t.Context(), "1", 7); out != 14 || err != nil || len(calls) != 2 {
			t.Errorf("%d, %v, %d calls", out, err, len(calls))
		}
	})
}

// A call that answers less than it was asked is an error, and panics no caller.
func TestCalls_MissingAnswersAreAnError(t *testing.T) {
	c := batch.Calls[int, int]{Call: func(string, []int) ([]int, error) { return nil, nil }, Most: 1}
	if _, err := c.Do(context.Background(), "1", 1); err == nil {
		t.Error("no error")
	}
}

// Who closes need not know that no question comes any more.
func TestCalls_WaitMeetsQuestions(t *testing.T) {
	c := &batch.Calls[int, int]{Most: 1, Call: func(_ string, in []int) ([]int, error) { return in, nil }}
	var all sync.WaitGroup
	for i := range 100 {
		all.Go(c.Wait)
		if out, err := c.Do(t.Context(), "1", i); err != nil || out != i {
			t.Error(out, err)
		}
	}
	all.Wait()
}
