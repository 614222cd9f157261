package records

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

// Owed is an order whose units are to be given back.
type Owed struct {
	SKU, Serial string
	Payload     string // as it was written
	Tries       int
	Since       time.Time
	Begun       bool // an instance has begun to give it back, and did not say what came of it
}

const (
	leaseFor    = time.Minute // longer than one try may take
	firstWait   = time.Second // after the first try
	longestWait = 5 * time.Minute
	maxOwed     = 10_000 // that a list shows

	// Late is the age from which on an order that is still owed is an alarm.
	Late = time.Hour
)

// Claim hands out at most n orders whose units are to be given back now. No other instance is handed them within a
// minute.
func (s *Store) Claim(ctx context.Context, n int) ([]Owed, error) {
	now := time.Now()
	reply, err := s.run(ctx, "claim", now.UnixMilli(), now.Add(leaseFor).UnixMilli(), n)
	if err != nil {
		return nil, err
	}
	var all []Owed
	for i := 0; i+2 < len(reply); i += 3 {
		all = append(all, owed(fmt.Sprint(reply[i]), fmt.Sprint(reply[i+1]), fmt.Sprint(reply[i+2])))
	}
	return all, nil
}

func owed(name, payload, text string) Owed {
	o := Owed{Payload: payload}
	o.SKU, o.Serial, _ = strings.Cut(name, " ")
	if parts := strings.SplitN(text, "|", 3); len(parts) == 3 {
		o.Tries, _ = strconv.Atoi(parts[0])
		since, _ := strconv.ParseInt(parts[1], 10, 64)
		o.Since, o.Begun = time.UnixMilli(since), parts[2] == "1"
	}
	return o
}

// Done ends an order: its units were given back, or are known to be lost.
func (s *Store) Done(ctx context.Context, o Owed) error {
	return s.do(ctx, func(ctx context.Context, c *redis.Client) error {
		_, err := c.TxPipelined(ctx, func(p redis.Pipeliner) error {
			p.ZRem(ctx, s.keys[owedKey], name(o.SKU, o.Serial))
			p.HDel(ctx, s.keys[triesKey], name(o.SKU, o.Serial))
			return nil
		})
		return err
	})
}

// Again has an order that was certainly not given back be tried once more, later each time, unless it was ended.
func (s *Store) Again(ctx context.Context, o Owed) error {
	wait := min(firstWait<<min(o.Tries, 20), longestWait)
	return s.do(ctx, func(ctx context.Context, c *redis.Client) error {
		_, err := c.TxPipelined(ctx, func(p redis.Pipeliner) error {
			p.HSet(ctx, s.keys[triesKey], name(o.SKU, o.Serial),
				fmt.Sprintf("%d|%d|0", o.Tries+1, o.Since.UnixMilli()))
			p.ZAddXX(ctx, s.keys[owedKey], redis.Z{Score: float64(time.Now().Add(wait).UnixMilli()),
				Member: name(o.SKU, o.Serial)})
			return nil
		})
		return err
	})
}

// Owed lists what is to be given back, at most 10,000 of them; what is tried next comes first.
func (s *Store) Owed(ctx context.Context) (all []Owed, err error) {
	err = s.do(ctx, func(ctx context.Context, c *redis.Client) error {
		names, err := c.ZRange(ctx, s.keys[owedKey], 0, maxOwed-1).Result()
		if err != nil || len(names) == 0 {
			return err
		}
		tries, err := c.HMGet(ctx, s.keys[triesKey], names...).Result()
		for i, text := range tries {
			all = append(all, owed(names[i], "", fmt.Sprint(text)))
		}
		return err
	})
	return all, err
}
