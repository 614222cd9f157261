package link

import (
	"context"
	"slices"

	"github.com/redis/go-redis/v9"
)

// stamped is a hook that tells every command of a pipeline when none of them was sent. Where Redis itself refuses a new
// connection (WRONGPASS, BUSY), go-redis says so of the pipeline alone: each of its commands would pass for answered,
// with 0, with nothing, or with OK.
type stamped struct{}

func (stamped) DialHook(next redis.DialHook) redis.DialHook { return next }

func (stamped) ProcessHook(next redis.ProcessHook) redis.ProcessHook { return next }

func (stamped) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		err := next(ctx, cmds)
		if err != nil && !slices.ContainsFunc(cmds, func(c redis.Cmder) bool { return c.Err() != nil }) {
			for _, c := range cmds {
				c.SetErr(err)
			}
		}
		return err
	}
}
