package limiter

import (
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"

	"pgregory.net/rapid"
)

// However many keys there were, those without a request in flight take no memory.
func TestInFlightLimiter_KeysThatLeftAreForgotten(t *testing.T) {
	l := NewInFlightLimiter(InFlightSpec{Max: 1})
	for i := range 100_000 {
		ticket, ok := l.Acquire(strconv.AppendInt(nil, int64(i), 10))
		if !ok {
			t.Fatalf("key %d got no place", i)
		}
		l.Release(ticket)
	}
	for i := range l.shards {
		if n := len(l.shards[i].held); n != 0 {
			t.Errorf("%d keys are kept", n)
		}
	}
}

// Beside a map that does the same.
func TestInFlightLimiter_CountsAsAMapDoes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		most := rapid.IntRange(1, 3).Draw(t, "max")
		l, model := NewInFlightLimiter(InFlightSpec{Max: most}), map[string][]uint64{}
		for range rapid.IntRange(1, 200).Draw(t, "steps") {
			key := fmt.Sprint(rapid.IntRange(0, 30).Draw(t, "key"))
			held := model[key]
			if rapid.Bool().Draw(t, "release") {
				if len(held) > 0 {
					l.Release(held[0])
					if model[key] = held[1:]; len(held) == 1 {
						delete(model, key)
					}
				}
				continue
			}
			want := len(held) < most
			if full := l.Full([]byte(key)); full != (len(held) >= most) {
				t.Fatalf("full %v with %d of %d", full, len(held), most)
			}
			ticket, ok := l.Acquire([]byte(key))
			if ok != want {
				t.Fatalf("%s with %d of %d: %v, want %v", key, len(held), most, ok, want)
			}
			if ok {
				model[key] = append(held, ticket)
			}
		}
		requests := 0
		for _, held := range model {
			requests += len(held)
		}
		if keys, n := l.InFlight(); keys != len(model) || n != requests {
			t.Fatalf("%d keys and %d requests, want %d and %d", keys, n, len(model), requests)
		}
		for _, held := range model {
			for _, ticket := range held {
				l.Release(ticket)
			}
		}
		if keys, left := l.InFlight(); keys != 0 || left != 0 {
			t.Fatalf("%d keys and %d requests are left after all %d were given back", keys, left, requests)
		}
	})
}

func TestInFlightLimiter_NeverMoreThanMaxAcrossThreads(t *testing.T) {
	l := NewInFlightLimiter(InFlightSpec{Max: 2})
	var held [50]atomic.Int64
	var work sync.WaitGroup
	for g := range 8 {
		work.Go(func() {
			for i := range 5000 {
				n := (i*7 + g) % len(held)
				ticket, ok := l.Acquire(strconv.AppendInt(nil, int64(n), 10))
				if !ok {
					continue
				}
				if held[n].Add(1) > 2 {
					t.Errorf("key %d has more than 2", n)
				}
				held[n].Add(-1)
				l.Release(ticket)
			}
		})
	}
	work.Wait()
	if keys, requests := l.InFlight(); keys != 0 || requests != 0 {
		t.Errorf("%d keys, %d requests are left", keys, requests)
	}
}

func TestInFlightLimiters_ReloadKeepsWhatIsInFlight(t *testing.T) {
	var s InFlightLimiters
	spec := InFlightSpec{Name: "a", Of: "$cookie_uid", Max: 2}
	first, use := s.Prepare([]InFlightSpec{spec})
	use()
	ticket, _ := first[0].Acquire([]byte("k"))
	spec.Max = 1
	second, use := s.Prepare([]InFlightSpec{spec})
	if second[0].Full([]byte("k")) {
		t.Error("a max is in force before use")
	}
	use()
	if !second[0].Full([]byte("k")) {
		t.Error("what was in flight is not counted after a reload")
	}
	first[0].Release(ticket)
	if keys, requests := s.InFlight("a"); keys != 0 || requests != 0 {
		t.Errorf("%d keys, %d requests", keys, requests)
	}
	spec.Of = "$host"
	if third, _ := s.Prepare([]InFlightSpec{spec}); third[0] == second[0] {
		t.Error("another key is counted in the same table")
	}
}

func TestInFlightLimiter_RejectionDoesNotAllocate(t *testing.T) {
	l, key := NewInFlightLimiter(InFlightSpec{Max: 1}), []byte("k")
	l.Acquire(key)
	if n := testing.AllocsPerRun(100, func() { l.Acquire(key) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkInFlightLimiter_AcquireAndRelease(b *testing.B) {
	l := NewInFlightLimiter(InFlightSpec{Max: 2})
	b.RunParallel(func(pb *testing.PB) {
		for i := int64(0); pb.Next(); i++ {
			var key [8]byte
			if ticket, ok := l.Acquire(strconv.AppendInt(key[:0], i%1000, 10)); ok {
				l.Release(ticket)
			}
		}
	})
}

func BenchmarkInFlightLimiter_Rejected(b *testing.B) {
	l, key := NewInFlightLimiter(InFlightSpec{Max: 1}), []byte("k")
	l.Acquire(key)
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			l.Acquire(key)
		}
	})
}
