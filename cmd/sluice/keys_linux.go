package main

import (
	"os"

	"golang.org/x/sys/unix"
)

// readKeys has keys arrive one by one and unseen; restore has them arrive as before. Ctrl-C goes on to interrupt.
func readKeys(f *os.File) (restore func()) {
	before, err := unix.IoctlGetTermios(int(f.Fd()), unix.TCGETS)
	if err != nil {
		return func() {} // not a terminal: no keys arrive
	}
	raw := *before
	raw.Lflag &^= unix.ICANON | unix.ECHO
	raw.Cc[unix.VMIN], raw.Cc[unix.VTIME] = 1, 0
	_ = unix.IoctlSetTermios(int(f.Fd()), unix.TCSETS, &raw) // then a key needs Enter behind it
	return func() { _ = unix.IoctlSetTermios(int(f.Fd()), unix.TCSETS, before) }
}

// terminalSize is in columns and lines; 80x24 where it is not known.
func terminalSize(f *os.File) (width, height int) {
	size, err := unix.IoctlGetWinsize(int(f.Fd()), unix.TIOCGWINSZ)
	if err != nil || size.Col < 20 || size.Row < 5 {
		return 80, 24
	}
	return int(size.Col), int(size.Row)
}
