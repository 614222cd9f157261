package adminclient

import (
	"context"
	"net"
	"net/http"
	"strings"
	"time"
)

// NewHTTP asks a gate at "host:port", "http://host:port" or "unix:/path" within the given time, and returns the URL
// that paths are appended to.
func NewHTTP(address string, within time.Duration) (base string, client *http.Client) {
	client = &http.Client{Timeout: within, CheckRedirect: noRedirect}
	if socket, isUnix := strings.CutPrefix(address, "unix:"); isUnix {
		client.Transport = &http.Transport{
			DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
				return new(net.Dialer).DialContext(ctx, "unix", socket)
			},
		}
		return "http://localhost", client
	}
	address = LocalAddress(address)
	if !strings.Contains(address, "://") {
		address = "http://" + address
	}
	return strings.TrimRight(address, "/"), client
}

// LocalAddress is a listener's address as it is asked on this machine.
func LocalAddress(listen string) string {
	for _, all := range []string{"0.0.0.0:", "[::]:", ":"} {
		if port, ok := strings.CutPrefix(listen, all); ok {
			return "127.0.0.1:" + port
		}
	}
	return listen
}
