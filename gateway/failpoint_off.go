//go:build !failpoints

package gateway

import (
	"net"
	"time"

	"sluice/stockgate/ledger"
)

// failStore returns s: nothing is to fail here.
func failStore(s *ledger.Store) ledger.Calls { return s }

// failUpstream returns adopt, which hands new connections of the upstream to the event loops.
func failUpstream(adopt func(net.Conn) net.Conn) func(net.Conn) net.Conn { return adopt }

// failListener returns ln.
func failListener(ln net.Listener) net.Listener { return ln }

// wallClock is this machine's own; nil = as it is.
func wallClock() func() time.Time { return nil }
