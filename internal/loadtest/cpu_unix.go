//go:build unix

package loadtest

import (
	"syscall"
	"time"
)

// cpu is the processor time of this process so far.
func cpu() time.Duration {
	var used syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &used) != nil {
		return 0
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}
