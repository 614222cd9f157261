package fleet

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	"sluice/stockgate/redisconn"
)

const (
	maxTasks = 32               // within taskTime
	taskTime = 30 * time.Second // an instance that learns of a task later does not do it
)

// Answer is what one instance says to a task.
type Answer struct{ Instance, Text string }

// Ask gives a task to all instances, and waits for their answers until ctx ends. missing are instances that were there
// and have not answered.
func (f *Fleet) Ask(ctx context.Context, text string) (answers []Answer, missing []string, err error) {
	if len(text) > maxText {
		return nil, nil, fmt.Errorf("task: %d bytes, more than %d", len(text), maxText)
	}
	all, err := f.Instances(ctx)
	if err != nil {
		return nil, nil, err
	}
	number, err := f.put(ctx, f.tasks, "", text, taskTime, 0)
	if err != nil {
		return nil, nil, err
	}
	f.awaken()
	again := time.NewTicker(100 * time.Millisecond)
	defer again.Stop()
	for {
		answers, err = f.answers(context.WithoutCancel(ctx), number)
		missing = missing[:0]
		for _, one := range all {
			if one.Age < 3*every && !slices.ContainsFunc(answers, func(a Answer) bool { return a.Instance == one.ID }) {
				missing = append(missing, one.ID)
			}
		}
		if err == nil && len(missing) == 0 {
			return answers, nil, nil
		}
		select {
		case <-ctx.Done():
			return answers, missing, err
		case <-again.C:
		}
	}
}

// answersOf is the key of the answers to a task.
func (f *Fleet) answersOf(task int64) string {
	name := f.options.Name
	return name.Tagged("fleet", string(name), "answers:"+strconv.FormatInt(task, 10))
}

func (f *Fleet) answer(ctx context.Context, task int64, text string) error {
	if len(text) > maxText {
		text = text[:maxText]
	}
	return f.do(ctx, "answer", func(ctx context.Context, c redisconn.Commands) error {
		pipe := c.Pipeline()
		pipe.HSet(ctx, f.answersOf(task), f.id, text)
		pipe.PExpire(ctx, f.answersOf(task), 2*taskTime)
		_, err := pipe.Exec(ctx)
		return err
	})
}

func (f *Fleet) answers(ctx context.Context, task int64) (all []Answer, err error) {
	err = f.do(ctx, "ask", func(ctx context.Context, c redisconn.Commands) error {
		found, err := c.HGetAll(ctx, f.answersOf(task)).Result()
		all = all[:0]
		for id, text := range found {
			all = append(all, Answer{id, text})
		}
		return err
	})
	slices.SortStableFunc(all, func(x, y Answer) int { return cmp.Compare(x.Instance, y.Instance) })
	return all, err
}
