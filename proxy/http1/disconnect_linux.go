package http1

import "golang.org/x/sys/unix"

// hungUp asks the kernel whether the peer has sent its end, or a reset. POLLRDHUP is set also behind bytes that were
// not read yet, such as a next request or the close_notify of TLS.
func hungUp(fd uintptr) bool {
	poll := [1]unix.PollFd{{Fd: int32(fd), Events: unix.POLLRDHUP}}
	for {
		n, err := unix.Poll(poll[:], 0)
		if err == unix.EINTR {
			continue
		}
		return n > 0 && err == nil
	}
}

// readable reports that a read, or an accept, would not wait.
func readable(fd uintptr) bool {
	p := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
	n, err := unix.Poll(p, 0)
	return err == nil && n == 1
}
