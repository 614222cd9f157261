//go:build !linux

package main

import (
	"errors"
	"net"
	"syscall"
)

func sharePort(_, _ string, _ syscall.RawConn) error { return nil }

func attract(net.Listener) error { return errors.New("only Linux can hand a port over without a loss") }
