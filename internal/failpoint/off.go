//go:build !failpoints

package failpoint

import (
	"net"

	"sluice/stockgate/ledger"
)

// Store returns s: nothing is to fail here.
func Store(s *ledger.Store) ledger.Calls { return s }

// WrapUpstream returns adopt, which hands new connections of the upstream to the event loops.
func WrapUpstream(adopt func(net.Conn) net.Conn) func(net.Conn) net.Conn { return adopt }

// Listener returns ln.
func Listener(ln net.Listener) net.Listener { return ln }
