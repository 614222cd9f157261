package link

import (
	"errors"
	"net"

	"github.com/redis/go-redis/v9"
)

// Unsent reports whether an error of Do or Ask tells that Redis cannot have got the question: the breaker was open, or
// there was no connection. false = nobody knows.
func Unsent(err error) bool {
	var op *net.OpError
	return errors.Is(err, ErrLeftAlone) || errors.Is(err, redis.ErrPoolTimeout) || errors.As(err, &op) && op.Op == "dial"
}
