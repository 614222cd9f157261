package redisconn

import (
	"context"

	"github.com/redis/go-redis/v9"
)

// Commands are what one server takes. Calls get them in place of *redis.Client: the compiler makes 1,500 wrappers of
// that in each package whose types lead to it (a weak.Pointer of go-redis does so), which takes it 2 s.
type Commands interface {
	redis.Cmdable
	Do(ctx context.Context, args ...any) *redis.Cmd
	DoRaw(ctx context.Context, args ...any) *redis.RawCmd
	Process(ctx context.Context, cmd redis.Cmder) error
}

// client is the *redis.Client of one server.
type client interface {
	Commands
	Close() error
}
