package script

import (
	"errors"
	"slices"

	"github.com/redis/go-redis/v9"

	"sluice/stockgate/redisconn"
)

// rejections are what Redis says for reasons of its own: it has not begun the script.
func rejections() []string {
	return []string{"READONLY ", "CLUSTERDOWN ", "MISCONF ", "NOREPLICAS ", "OOM ", "EXECABORT ", "max number of clients"}
}

// unsent reports whether err proves that Redis has done nothing, for reasons that have nothing to do with the keys.
func unsent(err error) bool {
	return redisconn.Unsent(err) || redisconn.Redirected(err) || errors.Is(err, redis.ErrClosed) ||
		slices.ContainsFunc(rejections(), func(prefix string) bool { return redis.HasErrorPrefix(err, prefix) })
}

// answered reports whether Redis itself said err, nil included.
func answered(err error) bool {
	return redisconn.Unanswered(err) == nil
}

// lost is err where it counts against Redis: not what a script ran into.
func lost(err error) error {
	if answered(err) && (err == nil || !unsent(err)) {
		return nil
	}
	return err
}
