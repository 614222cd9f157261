package link

import (
	"errors"
	"net"
	"strings"

	"github.com/redis/go-redis/v9"
)

// ErrNoTurn is the cause when a question that waited for others was not put within its time.
var ErrNoTurn = errors.New("others took all the time")

// Unsent reports whether an error of Do or Ask tells that Redis has done nothing: the breaker was open, there was no
// connection, or Redis has said before it ran anything that it will not. false = nobody knows. What a script of several
// writes ran into on its way (the message names the script then) is never such a word.
func Unsent(err error) bool {
	var op *net.OpError
	switch {
	case errors.Is(err, ErrLeftAlone), errors.Is(err, ErrNoTurn), errors.Is(err, redis.ErrPoolTimeout), errors.Is(err, errAnotherServer), errors.Is(err, errNoMaster):
		return true
	case errors.As(err, &op) && op.Op == "dial":
		return true
	}
	if err != nil && strings.Contains(err.Error(), "script: ") {
		return false
	}
	for _, refusal := range []string{"LOADING", "MASTERDOWN", "BUSY ", "NOAUTH", "WRONGPASS", "CLUSTERDOWN", "TRYAGAIN", "MOVED ", "ASK "} {
		if redis.HasErrorPrefix(err, refusal) {
			return true
		}
	}
	return false
}
