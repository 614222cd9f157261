package listener

import (
	"fmt"
	"net"
	"syscall"

	"golang.org/x/sys/unix"
)

// OpenFileLimit is how many files this process may open; 0 = not known.
func OpenFileLimit() int {
	var limit unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_NOFILE, &limit) != nil || limit.Cur > 1<<30 {
		return 0
	}
	return int(limit.Cur)
}

// sharePort lets another process that does the same listen on the same port (socket(7), SO_REUSEPORT).
func sharePort(_, _ string, raw syscall.RawConn) error {
	var failed error
	if err := raw.Control(func(fd uintptr) {
		failed = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_REUSEPORT, 1)
	}); err != nil {
		return err
	}
	return failed
}

// attract has the kernel give all new connections to this listener. Two processes share a port; without this the kernel
// would go on to deal every other connection to the one that is about to leave, and those that reach it in the instant
// in which it closes would be reset. The older socket is number 0 of the group, ours is number 1. When the other is
// gone, the number is out of range, and the kernel chooses by itself, from the one that is left.
func attract(ln net.Listener) error {
	tcp, ok := ln.(*net.TCPListener)
	if !ok {
		return fmt.Errorf("%T cannot be shared", ln)
	}
	raw, err := tcp.SyscallConn()
	if err != nil {
		return err
	}
	program := []unix.SockFilter{{Code: unix.BPF_RET | unix.BPF_K, K: 1}}
	var failed error
	if err := raw.Control(func(fd uintptr) {
		failed = unix.SetsockoptSockFprog(int(fd), unix.SOL_SOCKET, unix.SO_ATTACH_REUSEPORT_CBPF,
			&unix.SockFprog{Len: uint16(len(program)), Filter: &program[0]})
	}); err != nil {
		return err
	}
	return failed
}
