package ledger

import (
	"fmt"
	"testing"
	"time"
)

// After a fail-over nobody waits for an instance whose mark is a minute older than others': however many SKUs there
// are, an instance that lives must have called each of them within that time.
func TestEachOfManySKUsIsSweptWhileItsMarkIsFresh(t *testing.T) {
	const skus, fresh = 10_000, 60 * time.Second
	at(t, func(t *testing.T) {
		s := newShelf()
		for i := range skus {
			s.put(fmt.Sprint(i), 1, 0)
		}
		d := opened(t, deskOptions(), s, nil)
		for i := range skus {
			d.Track(fmt.Sprint(i))
		}
		for range 3 {
			before := s.count("sweep")
			time.Sleep(fresh / 2)
			if n := s.count("sweep") - before; n < skus {
				t.Fatalf("%d sweeps of %d SKUs in %v", n, skus, fresh/2)
			}
		}
	})
}
