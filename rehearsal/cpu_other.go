//go:build !unix

package rehearsal

import "time"

// cpu is not known here.
func cpu() time.Duration { return 0 }
