package server

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

// maxUnsent is how much of an answer the kernel keeps for one client beside what is on its way, in bytes. A client that
// stops to read would have it keep as much as net.ipv4.tcp_wmem allows, 4 MiB, which counts as memory of a container.
const maxUnsent = 128 << 10

// limitUnsent bounds what the kernel keeps (tcp(7), TCP_NOTSENT_LOWAT). A kernel that cannot keeps more.
func limitUnsent(fd uintptr) {
	_ = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_NOTSENT_LOWAT, maxUnsent)
}
