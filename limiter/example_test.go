package limiter_test

import (
	"fmt"
	"time"

	"sluice/limiter"
)

// Two of one SKU in 10 ms. The third and fourth wait for the next window; the fifth is rejected.
func Example() {
	grid := limiter.Grid{Size: 10 * time.Millisecond, MaxAhead: 1}
	windows := limiter.NewWindowLimiter(grid, limiter.Caps{PerSKU: 2})
	now := 4 * time.Millisecond // of a clock that the caller reads once a request
	for range 5 {
		wait, ok := windows.Acquire(int64(now), []byte("1001"))
		fmt.Println(ok, wait)
	}
	// Output:
	// true 0s
	// true 0s
	// true 6ms
	// true 6ms
	// false 6ms
}
