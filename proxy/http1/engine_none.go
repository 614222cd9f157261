//go:build !linux || noeventloop

package http1

// newEventLoops returns nil: every connection waits in a goroutine here.
func newEventLoops(*Server) eventLoops { return nil }
