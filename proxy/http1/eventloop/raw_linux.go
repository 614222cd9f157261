//go:build linux && !noeventloop && !race

package eventloop

import (
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// What never waits is called without a word to Go's scheduler: it would prepare for a long absence each time, and its
// supervisor would stay awake to look for one.

func read(fd int, p []byte) (int, error) {
	return raw(unix.SYS_READ, fd, unsafe.Pointer(unsafe.SliceData(p)), len(p))
}

func write(fd int, p []byte) (int, error) {
	return raw(unix.SYS_WRITE, fd, unsafe.Pointer(unsafe.SliceData(p)), len(p))
}

// epollWait is epoll_pwait(2) with a timeout of 0.
func epollWait(epoll int, events []unix.EpollEvent) (int, error) {
	return raw(unix.SYS_EPOLL_PWAIT, epoll, unsafe.Pointer(unsafe.SliceData(events)), len(events))
}

func raw(call uintptr, fd int, p unsafe.Pointer, n int) (int, error) {
	done, _, err := syscall.RawSyscall6(call, uintptr(fd), uintptr(p), uintptr(n), 0, 0, 0)
	if err != 0 {
		return 0, err
	}
	return int(done), nil
}
