//go:build linux && !noeventloop && !race

package eventloop

import (
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// These system calls never block, so Go's scheduler is not told about them: it would prepare for a call that
// blocks each time, and its monitor thread would stay awake.

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
