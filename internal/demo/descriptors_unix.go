//go:build unix

package demo

import (
	"fmt"
	"syscall"
)

// spareDescriptors are those beside the shoppers' own: a gate's connections to the shop, logs, the terminal.
const spareDescriptors = 1000

// enoughDescriptors reports whether the process may hold both ends of each shopper's connection. Go has raised the soft
// limit to the hard one when the process began; what is still too low only its user can raise.
func enoughDescriptors(shoppers int) error {
	var limit syscall.Rlimit
	if syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit) != nil {
		return nil // not known: then it is tried
	}
	if need := uint64(2*shoppers + spareDescriptors); uint64(limit.Cur) < need {
		return fmt.Errorf("open %d connections: this process may have %d files open, and they need %d: run \"ulimit -n "+
			"%d\" before, or ask for fewer shoppers",
			shoppers, limit.Cur, need, need)
	}
	return nil
}
