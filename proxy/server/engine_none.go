//go:build !linux || noeventloop

package server

// newEventLoops returns nil: every connection waits in a goroutine here.
func newEventLoops(*Server) eventLoops { return nil }
