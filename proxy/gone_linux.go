package proxy

import "golang.org/x/sys/unix"

// hungUp asks the kernel whether the peer has sent its end, or a reset. POLLRDHUP tells also behind bytes that nobody has
// read yet, such as a next request or the farewell of TLS.
func hungUp(fd uintptr) bool {
	look := [1]unix.PollFd{{Fd: int32(fd), Events: unix.POLLRDHUP}}
	for {
		n, err := unix.Poll(look[:], 0)
		if err == unix.EINTR {
			continue
		}
		return n > 0 && err == nil
	}
}
