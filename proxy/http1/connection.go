package http1

import "bytes"

// connection reads the options of one Connection line. Several lines are one list (RFC 9110, 5.3).
func (s *scan) connection(g *Guard, value []byte) Kind {
	if fold(value, "keep-alive") { // nearly always
		s.keepAlive = true
		return fine
	}
	for len(value) > 0 {
		option, rest, _ := bytes.Cut(value, []byte{','})
		value = rest
		if option = trim(option); len(option) == 0 {
			continue // RFC 9110, 5.6.1: empty elements are ignored
		}
		switch {
		case fold(option, "close"):
			s.Close = true
		case fold(option, "keep-alive"):
			s.keepAlive = true
		case fold(option, "upgrade"):
			s.wantsUpgrade = true
		case !isToken(option):
			return badConnection
		case g.names(option):
			return connectionNamesHeader
		default:
			s.Named = true
		}
	}
	return fine
}

// upgrade reads the protocols of one Upgrade line.
func (s *scan) upgrade(value []byte) {
	for len(value) > 0 {
		protocol, rest, _ := bytes.Cut(value, []byte{','})
		value = rest
		name, _, _ := bytes.Cut(trim(protocol), []byte{'/'})
		if len(name) == 0 {
			continue
		}
		s.Upgrade = true
		if fold(name, "h2c") {
			s.H2C = true
		}
	}
}

// settle decides what the head's options mean together, once all of it was seen.
func (s *scan) settle() {
	if s.HTTP10 {
		s.Close = s.Close || !s.keepAlive
	}
	// RFC 9110, 7.8: ignored without the option, and on HTTP/1.0; and on a connection that is to end there is nowhere to go.
	if s.HTTP10 || s.Close || !s.wantsUpgrade {
		s.Upgrade, s.H2C = false, false
	}
}
