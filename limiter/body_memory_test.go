package limiter

import (
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
)

func TestBodyMemory_LargeBodiesLeaveRoomForSmallOnes(t *testing.T) {
	var used atomic.Int64
	m := NewBodyMemory(&used, 64<<20)
	for _, c := range []struct {
		size  int64
		count int // that fit one after the other
	}{{256 << 10, 128}, {64 << 10, 0}, {SmallBody, 1024}, {SmallBody - 1, 0}, {TinyBody, 16384}, {1, 0}} {
		count := 0
		for m.Grow(0, c.size) {
			count++
		}
		if count != c.count {
			t.Errorf("%d bodies of %d bytes, want %d", count, c.size, c.count)
		}
	}
	if m.Release(0); used.Load() != 64<<20 {
		t.Errorf("%d bytes are in use, want all", used.Load())
	}
}

func TestBodyMemory_GrowingCountsOnlyWhatIsNew(t *testing.T) {
	var used atomic.Int64
	m := NewBodyMemory(&used, 64<<10)
	for held, size := int64(0), int64(1<<10); size <= 32<<10; held, size = size, 2*size {
		if !m.Grow(held, size) || used.Load() != size {
			t.Fatalf("from %d to %d bytes: %d are in use", held, size, used.Load())
		}
	}
	if m.Grow(32<<10, 32<<10+1) {
		t.Error("a large body took more than half")
	}
	smaller := NewBodyMemory(&used, 40<<10)
	if smaller.Grow(0, 9<<10) || !smaller.Grow(0, 1<<10) {
		t.Error("a smaller budget does not count what is in use")
	}
}

func TestBodyMemory_IsNeverExceeded(t *testing.T) {
	const size = 1 << 20
	var used atomic.Int64
	var wait sync.WaitGroup
	for range 8 {
		wait.Go(func() {
			m := NewBodyMemory(&used, size)
			var held []int64
			for range 20_000 {
				n := int64(1 + rand.IntN(128<<10))
				if m.Grow(0, n) {
					held = append(held, n)
				}
				if now := used.Load(); now > size || now < 0 {
					t.Errorf("%d bytes are in use", now)
					return
				}
				if len(held) > rand.IntN(8) {
					m.Release(held[0])
					held = held[1:]
				}
			}
			for _, n := range held {
				m.Release(n)
			}
		})
	}
	if wait.Wait(); used.Load() != 0 {
		t.Errorf("%d bytes are in use at the end", used.Load())
	}
}
