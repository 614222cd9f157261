package main

import (
	"context"
	"net"
	"net/http"
	"strings"
	"time"
)

// caller asks a gate at "host:port", "http://host:port" or "unix:/path" within the given time, and returns the URL that
// paths are appended to.
func caller(address string, within time.Duration) (base string, client *http.Client) {
	client = &http.Client{Timeout: within, CheckRedirect: here}
	if socket, isUnix := strings.CutPrefix(address, "unix:"); isUnix {
		client.Transport = &http.Transport{
			DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
				return new(net.Dialer).DialContext(ctx, "unix", socket)
			},
		}
		return "http://localhost", client
	}
	if strings.HasPrefix(address, ":") { // as it stands in a configuration
		address = "localhost" + address
	}
	if !strings.Contains(address, "://") {
		address = "http://" + address
	}
	return strings.TrimRight(address, "/"), client
}
