// Package listener opens the addresses of a gateway: TCP ports that a successor can take over, unix sockets, and
// sockets of the service manager. It serves nothing.
package listener

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"strconv"
	"strings"
	"syscall"
)

// OpenAll opens every address, or none. Unix sockets come first: a shared port gets connections at once, and these are
// reset where another address cannot be opened.
func OpenAll(addresses []string, takeOver bool) (listeners []net.Listener, err error) {
	listeners = make([]net.Listener, len(addresses))
	for _, unix := range []bool{true, false} {
		for i, address := range addresses {
			if isUnix(address) != unix {
				continue
			}
			if listeners[i], err = Open(address, takeOver); err != nil {
				closeAll(listeners)
				return nil, err
			}
		}
	}
	return listeners, nil
}

func closeAll(listeners []net.Listener) {
	for _, open := range listeners {
		if open != nil {
			open.Close()
		}
	}
}

const unixPrefix = "unix:"

func isUnix(address string) bool { return strings.HasPrefix(address, unixPrefix) }

// Open opens "host:port" or "unix:/path".
func Open(address string, takeOver bool) (net.Listener, error) {
	if isUnix(address) {
		return listenUnix(address[len(unixPrefix):])
	}
	return listenTCP(address, takeOver)
}

// listenTCP shares the port, so that a successor can take over. A port that another process listens on is an error all
// the same, unless taking it over is what was asked for.
func listenTCP(address string, takeOver bool) (net.Listener, error) {
	if !takeOver {
		alone, err := net.Listen("tcp", address)
		if errors.Is(err, syscall.EADDRINUSE) {
			return nil, fmt.Errorf(
				"%w; find what listens there with: ss -ltnp; a gateway that drains holds it until it has stopped, for which "+
					"sluice drain waits; to replace a running gateway with the same gates, start with --take-over", err)
		}
		if err != nil {
			return nil, permitted(address, err)
		}
		address = alone.Addr().String() // port 0 is decided now
		alone.Close()
	}
	shared := net.ListenConfig{Control: sharePort}
	ln, err := shared.Listen(context.Background(), "tcp", address)
	if err != nil {
		return nil, err
	}
	if takeOver {
		if err := attract(ln); err != nil {
			slog.Warn("both processes receive new connections until the old one ends; stop it with kill -TERM PID, and do not "+
				"use status, reload or drain before", "address", address, "err", err)
		}
	}
	return ln, nil
}

// permitted adds the way out to an error of rights.
func permitted(address string, err error) error {
	if !errors.Is(err, fs.ErrPermission) {
		return err
	}
	return fmt.Errorf("%w; choose a port from 1024 on for %s, or permit low ports: setcap cap_net_bind_service=+ep FILE, "+
		"or AmbientCapabilities=CAP_NET_BIND_SERVICE in systemd", err, address)
}

// listenUnix replaces a socket file without a listener.
func listenUnix(path string) (net.Listener, error) {
	if c, err := net.Dial("unix", path); err == nil {
		c.Close()
		return nil, fmt.Errorf(
			"%s: another process listens there; a unix socket is not taken over: stop that process first", path)
	}
	if info, err := os.Stat(path); err == nil && info.Mode()&os.ModeSocket != 0 {
		if err := os.Remove(path); err != nil {
			return nil, err
		}
	}
	return net.Listen("unix", path)
}

// Inherited are the sockets that systemd opened for this process (sd_listen_fds(3)): from descriptor 3 on.
func Inherited() (listeners []net.Listener, err error) {
	if os.Getenv("LISTEN_PID") != strconv.Itoa(os.Getpid()) {
		return nil, nil
	}
	n, err := strconv.Atoi(os.Getenv("LISTEN_FDS"))
	if err != nil || n < 0 {
		return nil, fmt.Errorf("LISTEN_FDS=%q is not a number of sockets", os.Getenv("LISTEN_FDS"))
	}
	for fd := 3; fd < 3+n; fd++ {
		f := os.NewFile(uintptr(fd), "LISTEN_FD_"+strconv.Itoa(fd))
		ln, err := net.FileListener(f)
		f.Close() // FileListener has its own copy
		if err != nil {
			return nil, fmt.Errorf("socket %d of the service manager: %w", fd, err)
		}
		listeners = append(listeners, ln)
	}
	return listeners, nil
}
