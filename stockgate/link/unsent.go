package link

import (
	"errors"
	"net"

	"github.com/redis/go-redis/v9"
)

// Unsent reports whether an error of Do or Ask tells that Redis has done nothing: the breaker was open, there was no
// connection, or Redis is not ready to run anything. false = nobody knows.
func Unsent(err error) bool {
	var op *net.OpError
	switch {
	case errors.Is(err, ErrLeftAlone), errors.Is(err, redis.ErrPoolTimeout), errors.Is(err, errAnotherServer), errors.Is(err, errNoMaster):
		return true
	case errors.As(err, &op) && op.Op == "dial":
		return true
	}
	for _, refusal := range []string{"LOADING", "MASTERDOWN", "BUSY ", "NOAUTH", "WRONGPASS"} {
		if redis.HasErrorPrefix(err, refusal) {
			return true
		}
	}
	return false
}
