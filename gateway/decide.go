package gateway

import (
	"log/slog"
	"net"

	"sluice/internal/listener"
	"sluice/proxy"
)

// openDeciders makes a server for each [[decide]].
func (g *Gateway) openDeciders(o proxy.ServerOptions) {
	for i := range g.Config.Decide {
		d := &g.Config.Decide[i]
		o.Decide = &proxy.Decide{Dialect: d.Dialect, Peers: d.Trusted()}
		g.deciders = append(g.deciders, g.Server.Decider(o))
	}
}

// openDecideListeners opens the address of each [[decide]], or none.
func (g *Gateway) openDecideListeners(takeOver bool) (listeners []net.Listener, err error) {
	addresses := make([]string, len(g.Config.Decide))
	for i := range g.Config.Decide {
		addresses[i] = g.Config.Decide[i].Listen
	}
	if listeners, err = listener.OpenAll(addresses, takeOver); err != nil {
		return nil, g.Config.Errorf("decide", "%v", err)
	}
	if err := listener.PermitSockets(listeners, g.Config); err != nil {
		for _, ln := range listeners {
			ln.Close()
		}
		return nil, err
	}
	return listeners, nil
}

// listenDeciders answers on the listeners of openDecideListeners; failed tells when one of them ends by itself.
func (g *Gateway) listenDeciders(listeners []net.Listener, failed chan<- error, log *slog.Logger) {
	for i, ln := range listeners {
		go func() {
			if err := g.deciders[i].Serve(failListener(ln)); err != nil {
				failed <- err
			}
		}()
		log.Info("listening for proxies that ask", "address", ln.Addr().String(), "dialect", g.Config.Decide[i].Dialect)
	}
}
