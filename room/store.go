package room

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"sluice/stockgate/redisconn"
)

//go:embed lua/*.lua
var scripts embed.FS

// ErrNoRoom is the cause where Redis does not know the room: no instance has made it yet, or Redis has lost it.
var ErrNoRoom = errors.New("no such room in Redis")

// Store is one room in Redis. It is safe for concurrent use.
type Store struct {
	link *redisconn.Client
	keys struct{ room, steps, good, used, inside, people, lately string }

	scripts map[string]*redis.Script

	mu   sync.Mutex
	last issue
}

// issue is the last number that is known to be given out, and when the room of it was opened.
type issue struct{ opened, number int64 }

// heard is the last number that this instance has heard of, now that it has heard of n.
func (s *Store) heard(n issue) issue {
	s.mu.Lock()
	defer s.mu.Unlock()
	if n.opened > s.last.opened || n.opened == s.last.opened && n.number > s.last.number {
		s.last = n
	}
	return s.last
}

// NewStore is the room of a name, of a shop behind link, which it does not close.
func NewStore(link *redisconn.Client, shop redisconn.Name, name string) *Store {
	s := &Store{link: link, scripts: map[string]*redis.Script{}}
	for _, script := range []string{"tick", "create", "move", "join", "claim", "use", "set", "draw"} {
		text, err := scripts.ReadFile("lua/" + script + ".lua")
		if err != nil {
			panic("BUG: " + err.Error())
		}
		s.scripts[script] = redis.NewScript(string(text))
	}
	key := shop.Tagged("room", name, "")
	s.keys.room, s.keys.steps, s.keys.good, s.keys.used = key+"s", key+"h", key+"c", key+"u"
	s.keys.inside, s.keys.people, s.keys.lately = key+"i", key+"p", key+"l"
	return s
}

// RedisKeys are the keys of the room of a name.
func RedisKeys(shop redisconn.Name, name string) []string {
	k := NewStore(nil, shop, name).keys
	return []string{k.room, k.steps, k.good, k.used, k.inside, k.people, k.lately}
}

// run runs a script where the room is.
func (s *Store) run(ctx context.Context, script string, keys []string, args ...any) (reply any, err error) {
	err = s.link.To(s.keys.room).Do(ctx, func(ctx context.Context, c redisconn.Commands) error {
		var err error
		if reply, err = s.scripts[script].Run(ctx, c, keys, args...).Result(); errors.Is(err, redis.Nil) {
			return ErrNoRoom
		}
		return err
	}, func(err error) error {
		if errors.Is(err, ErrNoRoom) {
			return nil
		}
		return redisconn.Unanswered(err)
	})
	return reply, err
}

// number is one number with the time at which it was given out.
type number struct {
	number int64
	at     int64 // Unix ms of Redis' clock; not before the room was opened
	early  bool  // before the start
}

// Join takes n numbers for users, who are counted as people and not kept. It returns the first one.
func (s *Store) Join(ctx context.Context, n int, users ...string) (first number, err error) {
	reply, err := s.run(ctx, "join", []string{s.keys.room, s.keys.people}, withUsers(users, n)...)
	if err != nil {
		return number{}, fmt.Errorf("take %d numbers: %w", n, err)
	}
	parts, ok := reply.([]any)
	if !ok || len(parts) != 4 {
		return number{}, fmt.Errorf("take %d numbers: a reply of another form: %v", n, reply)
	}
	first = number{whole(parts[0]), whole(parts[1]), whole(parts[2]) == 1}
	s.heard(issue{whole(parts[3]), first.number + int64(n) - 1})
	return first, nil
}

// Claim is that of one user, who had waited for so long until it could claim a pass.
type Claim struct {
	User   string
	waited time.Duration
	From   int64 // when it could claim; Unix ms
}

// Claim counts a pass for each user, which is good until expires (Unix ms), and of which an order is expected for
// within. It returns until when the pass of each is good: that of a user who has one already stays as it is.
func (s *Store) Claim(ctx context.Context, expires int64, within time.Duration, claims []Claim) (
	until []int64, err error,
) {
	args := []any{expires, within.Milliseconds()}
	for _, c := range claims {
		args = append(args, c.User, waitClass(c.waited), c.From)
	}
	reply, err := s.run(ctx, "claim", []string{s.keys.room, s.keys.good, s.keys.used, s.keys.inside,
		s.keys.lately}, args...)
	if err != nil {
		return nil, fmt.Errorf("claim %d passes: %w", len(claims), err)
	}
	parts, ok := reply.([]any)
	if !ok || len(parts) != len(claims) {
		return nil, fmt.Errorf("claim %d passes: a reply of another form: %v", len(claims), reply)
	}
	for _, part := range parts {
		until = append(until, whole(part))
	}
	return until, nil
}

// Use counts the passes of users with which an order was placed.
func (s *Store) Use(ctx context.Context, users []string) error {
	keys := []string{s.keys.room, s.keys.good, s.keys.used, s.keys.inside}
	if _, err := s.run(ctx, "use", keys, withUsers(users)...); err != nil {
		return fmt.Errorf("use %d passes: %w", len(users), err)
	}
	return nil
}

func withUsers(users []string, first ...any) []any {
	for _, u := range users {
		first = append(first, u)
	}
	return first
}

// Why a draw is not made.
var (
	ErrDrawn    = errors.New("the draw was made before")
	ErrTooEarly = errors.New("the sale has not begun: the draw is made after the start")
	ErrRound    = errors.New("the draw waits for another round of the beacon now: the start was moved")
)

// Draw makes the draw of l with signature, in hexadecimal digits, which the caller has checked against its round and
// key.
func (s *Store) Draw(ctx context.Context, l *Lottery, signature string) error {
	reply, err := s.run(ctx, "draw", []string{s.keys.room}, signature, l.BeaconRound, l.BeaconKey)
	if err == nil {
		err = map[int64]error{0: ErrNoRoom, -1: ErrDrawn, -2: ErrTooEarly, -3: ErrRound}[whole(reply)]
	}
	if err != nil {
		return fmt.Errorf("draw: %w", err)
	}
	return nil
}

// whole reads a number of a reply; what is none is 0.
func whole(v any) int64 {
	switch v := v.(type) {
	case int64:
		return v
	case string:
		n, err := strconv.ParseInt(v, 10, 64)
		if err != nil {
			return 0
		}
		return n
	}
	return 0
}
