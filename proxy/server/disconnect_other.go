//go:build !linux

package server

// hungUp cannot be asked here without reading a byte off the connection.
func hungUp(uintptr) bool { return false }

// readable cannot be asked here.
func readable(uintptr) bool { return true }

// limitUnsent is not done here.
func limitUnsent(uintptr) {}
