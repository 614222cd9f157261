//go:build failpoints

package main

import (
	"os"
	"time"
)

// machineClock is this machine's own, wrong by SLUICE_CLOCK_AHEAD, like "400ms" or "-1h".
func machineClock() func() time.Time {
	by, err := time.ParseDuration(os.Getenv("SLUICE_CLOCK_AHEAD"))
	if err != nil {
		return nil
	}
	return func() time.Time { return time.Now().Add(by) }
}
