//go:build !linux

package proxy

import "time"

// A garage is for Linux alone: elsewhere each parked connection waits in a goroutine of its own.
type garage struct{}

type stall struct{}

func (*garage) take(*Conn, time.Duration) bool { return false }

func (*garage) empty() {}
