package link

import (
	"context"
	"slices"

	"github.com/redis/go-redis/v9"
)

// askingFirst is a hook that puts an ASKING before each command that names keys, in the same packet: it holds for the
// next command of its connection alone.
type askingFirst struct{ client *redis.Client }

func (askingFirst) DialHook(next redis.DialHook) redis.DialHook { return next }

// ProcessHook makes a pipeline of a single command.
func (h askingFirst) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if keyless(cmd.Name()) {
			return next(ctx, cmd)
		}
		pipe := h.client.Pipeline()
		_ = pipe.Process(ctx, cmd)
		_, _ = pipe.Exec(ctx)
		return cmd.Err()
	}
}

// ProcessPipelineHook returns the first error that is no ASKING's.
func (askingFirst) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		all := make([]redis.Cmder, 0, 2*len(cmds))
		for _, cmd := range cmds {
			if !keyless(cmd.Name()) {
				all = append(all, redis.NewCmd(ctx, "asking"))
			}
			all = append(all, cmd)
		}
		if len(all) == len(cmds) {
			return next(ctx, cmds)
		}
		err := next(ctx, all)
		for _, cmd := range cmds {
			if cmd.Err() != nil {
				return cmd.Err()
			}
		}
		return err
	}
}

// keyless reports whether a command is one of those that a connection begins with, or that speak of no key.
func keyless(command string) bool {
	return slices.Contains([]string{"hello", "auth", "client", "select", "info", "role", "script", "ping", "wait"}, command)
}
