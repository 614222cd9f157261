package upstream

import (
	"fmt"
	"hash/fnv"
	"net/url"
	"strings"
)

// address is what a target's URL says.
type address struct {
	url       string // as configured; the metrics' label
	authority []byte // for Host
	network   string // "tcp" or "unix"
	host      string // name, address or path
	port      string
	encrypted bool
	hash      uint64 // for client_hash
}

// parseAddress reads "http://host[:port]", "https://host[:port]" or "unix:/path".
func parseAddress(target string) (address, error) {
	a := address{url: target, network: "tcp"}
	h := fnv.New64a()
	h.Write([]byte(target))
	a.hash = h.Sum64()
	if path, ok := strings.CutPrefix(target, "unix:"); ok {
		if path == "" {
			return a, fmt.Errorf("read target %q: no path", target)
		}
		a.network, a.host, a.authority = "unix", path, []byte("localhost")
		return a, nil
	}
	u, err := url.Parse(target)
	if err != nil {
		return a, fmt.Errorf("read target %q: %w", target, err)
	}
	switch {
	case u.Scheme == "http":
		a.port = "80"
	case u.Scheme == "https":
		a.port, a.encrypted = "443", true
	default:
		return a, fmt.Errorf("read target %q: http://, https:// or unix: is needed before the address", target)
	}
	if u.User != nil || u.Hostname() == "" || strings.Trim(u.Path, "/") != "" || u.RawQuery != "" || u.Fragment != "" {
		return a, fmt.Errorf("read target %q: only scheme, host and port may be given", target)
	}
	a.host, a.authority = u.Hostname(), []byte(u.Host)
	if u.Port() != "" {
		a.port = u.Port()
	}
	return a, nil
}
