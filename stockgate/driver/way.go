package driver

import (
	"context"

	"github.com/redis/go-redis/v9"

	"sluice/stockgate/link"
)

// way makes round trips, each command to the server that has its key.
type way struct{ *link.Link }

// send makes one round trip of cmds, of a cluster one to each master that has some of their keys. Each of them then has
// its own reply or error. A command is sent again only when it was certainly not run: the key, or the master, is elsewhere.
// It returns the first error that is Redis' own, nil when every command was answered.
func (w way) send(ctx context.Context, cmds []redis.Cmder) error {
	if len(cmds) == 0 {
		return nil
	}
	s := &sending{cmds: cmds, done: make([]bool, len(cmds))}
	keys := make([]string, len(cmds))
	for i, cmd := range cmds {
		keys[i] = keyOf(cmd)
	}
	errs := w.Each(ctx, keys, s.ask, lost)
	var first error
	for i, cmd := range cmds {
		if !s.done[i] {
			cmd.SetErr(unasked{errs[i]})
		}
		if first == nil {
			first = lost(cmd.Err())
		}
	}
	return first
}

// keyOf is the key by which a command finds its server: all keys of one are in one slot.
func keyOf(cmd redis.Cmder) string {
	at := 1
	switch cmd.Name() {
	case "evalsha", "eval":
		at = 3
	}
	key, _ := cmd.Args()[at].(string)
	return key
}

// sending is commands on their way. Each of done is written by whoever carries that command.
type sending struct {
	cmds []redis.Cmder
	done []bool // by position: nobody may send it again
}

// ask sends those of some commands that were not done yet. Its error is why some are not, or what ails Redis.
func (s *sending) ask(ctx context.Context, c *redis.Client, which []int) error {
	pipe := c.Pipeline()
	var now []int
	for _, i := range which {
		if !s.done[i] {
			now = append(now, i)
			_ = pipe.Process(ctx, s.cmds[i]) // only queued
		}
	}
	if len(now) == 0 {
		return nil
	}
	_, _ = pipe.Exec(ctx) // each command has its own error
	var elsewhere, away error
	for _, i := range now {
		err := s.cmds[i].Err()
		s.done[i] = !unsent(err)
		if link.Elsewhere(err) {
			elsewhere = err
		} else if away == nil {
			away = lost(err)
		}
	}
	if away != nil {
		return away
	}
	return elsewhere
}
