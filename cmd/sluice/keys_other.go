//go:build !linux

package main

import "os"

// readKeys changes nothing: a key needs Enter behind it.
func readKeys(*os.File) (restore func()) { return func() {} }

// terminalSize is what every terminal has.
func terminalSize(*os.File) (width, height int) { return 80, 24 }
