//go:build unix && !linux

package upstream

import "golang.org/x/sys/unix"

const canProbe = true

// silent asks the kernel, without waiting, whether the socket is open and nothing can be read from it: no byte, no end,
// no error. poll reports the same as a recv with MSG_PEEK would, and takes no buffer.
func silent(fd uintptr) bool {
	polled := [1]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
	for {
		n, err := unix.Poll(polled[:], 0)
		if err == unix.EINTR {
			continue
		}
		return n == 0 && err == nil
	}
}
