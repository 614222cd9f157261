package redisconn

import (
	"context"
)

// Guard is what must hold before a Client asks or writes anything: it is checked before the first call, and before the
// next one after a connection was opened. What it rejects is not sent. A Redis that cannot tell whether it still holds
// stops no call: a master of a cluster that is away must not stop the others.
type Guard struct {
	Key string // which the check reads
	// Check makes one round trip. verdict is why nothing may be sent. It is checked again before the next call, too, if it
	// does not last.
	Check func(ctx context.Context, c Commands) (verdict error, lasts bool, err error)
}

// Client.passed before the guard has let a call through, and after it has let one through and wants to be asked again.
const (
	notPassed = -1
	askAgain  = -2
)

// guard returns nil where the guard lets calls through.
func (l *Client) guard(ctx context.Context) error {
	g, opened, passed := l.options.Guard, l.options.opened.Load(), l.passed.Load()
	if g == nil || passed == opened {
		return nil
	}
	var verdict error
	lasts := false
	err := Route{link: l, key: g.Key, free: true}.Do(ctx, func(ctx context.Context, c Commands) (err error) {
		verdict, lasts, err = g.Check(ctx, c)
		return err
	}, Unanswered)
	switch {
	case err != nil && passed != notPassed:
		return nil
	case err != nil:
		return rejected{&unreachedError{"read " + g.Key, err}}
	case verdict != nil:
		l.passed.Store(notPassed)
		return rejected{verdict}
	case lasts:
		l.passed.Store(opened)
	default:
		l.passed.Store(askAgain)
	}
	return nil
}

// rejected is an error of a guard: nothing was sent.
type rejected struct{ error }

func (e rejected) Unwrap() error        { return e.error }
func (e rejected) Is(target error) bool { return target == ErrUnsent }
