//go:build !failpoints

package main

import "time"

// machineClock is this machine's own; nil = as it is.
func machineClock() func() time.Time { return nil }
