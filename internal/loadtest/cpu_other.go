//go:build !unix

package loadtest

import "time"

// cpu is not known here.
func cpu() time.Duration { return 0 }
