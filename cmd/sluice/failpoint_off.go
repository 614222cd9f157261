//go:build !failpoints

package main

import (
	"net"

	"sluice/stockgate/ledger"
)

// Places where a build with the tag failpoints can be killed. In this one nothing stands there.

func breakableStore(s ledger.Store) ledger.Store { return s }

func wrapUpstream(adopt func(net.Conn) net.Conn) func(net.Conn) net.Conn { return adopt }

func breakableFront(ln net.Listener) net.Listener { return ln }
