package driver

import (
	"errors"

	"github.com/redis/go-redis/v9"

	"sluice/stockgate/link"
)

// unasked is why a command was never sent, or only to servers that said that its key is elsewhere.
type unasked struct{ error }

func (u unasked) Unwrap() error { return u.error }

// refusals are what Redis says for reasons of its own: it has not run the command, or has not begun the script.
func refusals() []string {
	return []string{"READONLY ", "CLUSTERDOWN ", "MISCONF ", "NOREPLICAS ", "OOM ", "EXECABORT ", "max number of clients"}
}

// unsent reports whether err proves that Redis has done nothing, whoever is to blame but the keys.
func unsent(err error) bool {
	var never unasked
	if errors.As(err, &never) || link.Unsent(err) || link.Elsewhere(err) || errors.Is(err, redis.ErrClosed) {
		return true
	}
	for _, refusal := range refusals() {
		if redis.HasErrorPrefix(err, refusal) {
			return true
		}
	}
	return false
}

// answered reports whether Redis itself said err, nil included.
func answered(err error) bool {
	var reply redis.Error
	return err == nil || errors.As(err, &reply)
}

// lost is err where it counts against Redis: not what a command ran into.
func lost(err error) error {
	if answered(err) && (err == nil || !unsent(err)) {
		return nil
	}
	return err
}

// fail notes an error of a command whose effect counts.
func fail(err error) why {
	switch {
	case unsent(err):
		return notSent
	case answered(err):
		return faulty
	}
	return unsure
}

// nothing judges an error of a command that takes no units.
func nothing(err error) why {
	if answered(err) && !unsent(err) {
		return faulty
	}
	return notSent
}
