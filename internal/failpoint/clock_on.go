//go:build failpoints

package failpoint

import (
	"os"
	"time"
)

// Clock is this machine's own, wrong by SLUICE_CLOCK_AHEAD, like "400ms" or "-1h".
func Clock() func() time.Time {
	by, err := time.ParseDuration(os.Getenv("SLUICE_CLOCK_AHEAD"))
	if err != nil {
		return nil
	}
	return func() time.Time { return time.Now().Add(by) }
}
