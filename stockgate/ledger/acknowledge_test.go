package ledger

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/redis/go-redis/v9"

	"sluice/internal/redistest"
	"sluice/internal/testkit"
)

// trimmed is a stream that is acknowledged step by step.
type trimmed struct {
	r      *Store
	client *redis.Client
	sku    string
}

// left acknowledges a version of an epoch, and compares how many changes stay; 0 = it must be refused.
func (s *trimmed) left(epoch, ver, want int64) error {
	left, err := s.r.Acknowledge(context.Background(), s.sku, fmt.Sprint(epoch, "-", ver))
	if want == 0 && err == nil {
		return fmt.Errorf("%d-%d was accepted", epoch, ver)
	}
	if want == 0 {
		return nil
	}
	return errors.Join(err, differ(fmt.Sprint("left by ", epoch, "-", ver), left, want))
}

// group lets a consumer group read up to a version and finish all but the last unfinished of what it reads.
func (s *trimmed) group(name string, count, unfinished int64) error {
	ctx := context.Background()
	key := keys(s.sku)[4]
	_ = s.client.XGroupCreate(ctx, key, name, "0").Err() // or it is there
	got, err := s.client.XReadGroup(
		ctx,
		&redis.XReadGroupArgs{Group: name, Consumer: "one", Streams: []string{key, ">"}, Count: count, Block: -1},
	).Result()
	if err != nil {
		return err
	}
	for _, m := range got[0].Messages[:max(0, len(got[0].Messages)-int(unfinished))] {
		err = errors.Join(err, s.client.XAck(ctx, key, name, m.ID).Err())
	}
	return err
}

// play makes 20 changes, of which the last 10 are in the next epoch, and acknowledges some of them.
func (s *trimmed) play() error {
	ctx := context.Background()
	stock, err := s.r.SetTotal(ctx, s.sku, 100, 0)
	for i := range 18 {
		_, e := s.r.Reserve(
			ctx,
			s.sku,
			0,
			1,
			2,
			[]Item{{Serial: fmt.Sprint(i), User: "", Quantity: 1}},
			make([]Code, 1),
		)
		err = errors.Join(err, e)
		if i == 8 {
			_, e = s.r.SetState(ctx, s.sku, Frozen)
			_, f := s.r.Add(ctx, s.sku, 1, "")
			_, g := s.r.SetState(ctx, s.sku, On)
			err = errors.Join(err, e, f, g)
		}
	}
	first := stock.Epoch
	return errors.Join(err,
		s.left(first, 4, 18), s.left(first-1, 99, 18), s.left(first+1, 23, 0), s.left(first+2, 1, 0),
		s.group("slow", 5, 2),   // versions 5 to 9
		s.group("fast", 9, 0),   // to 13
		s.left(first+1, 15, 15), // 8 is the slow one's
		s.group("slow", 10, 0),
		s.left(first+1, 15, 15),
		s.client.XGroupDestroy(ctx, keys(s.sku)[4], "slow").Err(),
		s.left(first+1, 15, 9), // 14 is the fast one's next
		s.group("fast", 9, 0),
		s.left(first+1, 15, 7), s.left(first, 99, 7), s.left(first+1, 22, 1))
}

func TestAcknowledge_DropsWhatEachGroupHasDone(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	s := trimmed{r: connect(t, server, texts()), client: server.Client, sku: "1001"}
	testkit.Check(t, s.play())
}
