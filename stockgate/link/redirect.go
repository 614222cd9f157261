package link

import (
	"errors"
	"net"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"
)

// What a server says that did nothing because of the slot.
const (
	here  = iota // nothing of that kind
	moved        // another server has the slot
	ask          // another server has these keys by now, and is about to get the slot
	again        // the keys are at two servers at the moment
)

// Elsewhere reports whether a server said that it has not run a command, since the key is on another one, or is about to
// be (MOVED, ASK, TRYAGAIN).
func Elsewhere(err error) bool { return elsewhere(err).kind != here }

// redirection is what an error says of the slot.
type redirection struct {
	kind    int
	slot    int    // of moved and ask
	address string // of moved and ask; its host may be empty: the host that said so
}

// elsewhere reads err.
func elsewhere(err error) redirection {
	var reply redis.Error
	if err == nil || !errors.As(err, &reply) {
		return redirection{}
	}
	words := strings.Fields(reply.Error())
	if len(words) > 0 && words[0] == "TRYAGAIN" {
		return redirection{kind: again}
	}
	if len(words) != 3 || words[0] != "MOVED" && words[0] != "ASK" {
		return redirection{}
	}
	slot, err := strconv.Atoi(words[1])
	if err != nil || slot < 0 || slot >= slots {
		return redirection{}
	}
	if words[0] == "ASK" {
		return redirection{ask, slot, words[2]}
	}
	return redirection{moved, slot, words[2]}
}

// complete is address, with the host of from where it has none of its own. Redirections write IPv6 addresses without brackets:
// the port is what stands behind the last colon.
func complete(address, from string) string {
	colon := strings.LastIndexByte(address, ':')
	if colon < 0 {
		return address
	}
	host := strings.Trim(address[:colon], "[]")
	if host == "" || host == "?" {
		said, _, err := net.SplitHostPort(from)
		if err != nil {
			return address
		}
		host = said
	}
	return net.JoinHostPort(host, address[colon+1:])
}
