//go:build !linux

package load

import (
	"errors"
	"time"
)

var errNoProc = errors.New("read costs: there is no /proc here")

// CPU is an error here.
func CPU([]int) (time.Duration, error) { return 0, errNoProc }

// PSS is an error here.
func PSS([]int) (int64, error) { return 0, errNoProc }
