package proxy

import "sluice/internal/octets"

// acceptsGzip reads Accept-Encoding: whether the client takes gzip (RFC 9110, section 12.5.3).
func acceptsGzip(accept []byte) bool {
	yes := false
	for len(accept) > 0 {
		var item []byte
		item, accept = octets.Cut(accept, ',')
		name, params := octets.Cut(item, ';')
		switch name = octets.Trim(name); {
		case octets.EqualFold(name, "gzip"):
			return octets.Quality(params) > 0
		case string(name) == "*":
			yes = octets.Quality(params) > 0
		}
	}
	return yes
}
