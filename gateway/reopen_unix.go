//go:build unix

package gateway

import (
	"os"
	"syscall"
)

// rotated are the signals by which the logs' files are opened anew.
func rotated() []os.Signal { return []os.Signal{syscall.SIGHUP, syscall.SIGUSR1} }
