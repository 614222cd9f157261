//go:build !failpoints

package failpoint

import "time"

// Clock is this machine's own; nil = as it is.
func Clock() func() time.Time { return nil }
