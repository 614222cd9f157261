package ledger

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"
	"pgregory.net/rapid"

	"sluice/internal/redistest"
	"sluice/internal/testkit"
)

// witness reads the keys of one SKU after each step, past the store, and replays its stream.
type witness struct {
	client *redis.Client
	read   string            // the id of the last entry that was replayed
	ver    int64             // its version
	stock  map[string]string // the numbers by the stream
	orders map[string]string // the records by the stream
}

func newWitness(c *redis.Client) *witness {
	return &witness{client: c, read: "0", stock: map[string]string{}, orders: map[string]string{}}
}

// sight is what lies in Redis.
type sight struct {
	numbers, records, units map[string]string
	due                     map[string]float64
	lives                   []int64 // of each key; -1 = for ever, -2 = there is no such key
}

var sinceVersion = regexp.MustCompile(`^(.\|\d+/\?)\d+-\d+\|`)

// undated is a record without the version since which it is so: the model has none.
func undated(record string) string { return sinceVersion.ReplaceAllString(record, "$1|") }

func (w *witness) look(p *play) error {
	ctx := context.Background()
	k := keys(p.sku)
	pipe := w.client.Pipeline()
	numbers, records, units := pipe.HGetAll(ctx, k[0]), pipe.HGetAll(ctx, k[1]), pipe.HGetAll(ctx, k[2])
	times := pipe.ZRangeWithScores(ctx, k[3], 0, -1)
	events := pipe.Do(ctx, "xrange", k[4], "("+w.read, "+")
	var lives []*redis.Cmd
	for _, key := range k {
		lives = append(lives, pipe.Do(ctx, "pttl", key))
	}
	if _, err := pipe.Exec(ctx); err != nil {
		return err
	}
	maps.DeleteFunc(numbers.Val(), func(name, value string) bool { // laws of their own hold for marks
		return value == "" || slices.Contains([]string{"run", "born", "was", "since", "upto", "later"}, name) ||
			strings.HasPrefix(name, "m:") ||
			strings.HasPrefix(name, "rc:")
	})
	for serial, record := range records.Val() {
		records.Val()[serial] = undated(record)
	}
	s := sight{numbers.Val(), records.Val(), units.Val(), map[string]float64{}, nil}
	for _, z := range times.Val() {
		s.due[z.Member.(string)] = z.Score
	}
	for _, l := range lives {
		s.lives = append(s.lives, l.Val().(int64))
	}
	entries, err := events.Slice()
	if err != nil {
		return err
	}
	return errors.Join(s.expect(p), s.balance(), w.replay(entries), w.agree(s))
}

// expect compares the keys with the model.
func (s sight) expect(p *play) error {
	numbers, records, units := map[string]string{}, map[string]string{}, map[string]string{}
	due := map[string]float64{}
	if m := &p.model; m.exists {
		numbers = map[string]string{"state": string(m.state)}
		if m.why != "" {
			numbers["why"] = m.why
		}
		for name, n := range map[string]int64{
			"total": m.total, "held": m.count("held"), "sold": m.count("sold"),
			"limit": m.limit, "epoch": m.epoch, "ver": m.ver, "opens": m.opens, "closes": m.closes,
		} {
			numbers[name] = strconv.FormatInt(n, 10)
		}
		if len(m.added) > 0 {
			numbers["added"] = m.remembered()
		}
	}
	for _, o := range p.model.orders {
		letter := map[string]string{"held": "H", "sold": "C", "released": "X", "refunded": "R"}[o.status]
		quantity := unitsText(o.quantity, o.cart)
		records[o.serial] = fmt.Sprintf("%s|%s|%d|%s", letter, quantity, o.deadline, o.user)
		if n := p.model.unitsOf(o.user); n > 0 {
			units[o.user] = strconv.FormatInt(n, 10)
		}
		if o.status != "sold" && (o.status != "refunded" || o.due > 0) {
			due[o.serial] = float64(o.due)
		}
	}
	return errors.Join(
		differ("numbers", s.numbers, numbers),
		differ("records", s.records, records),
		differ("units", s.units, units),
		differ("times", s.due, due),
	)
}

// balance holds the invariants that need no model.
func (s sight) balance() error {
	for _, life := range s.lives {
		if life >= 0 {
			return errors.New("a key of the ledger expires")
		}
	}
	if len(s.numbers) == 0 {
		return nil
	}
	taken, users := integer(s.numbers["held"])+integer(s.numbers["sold"]), int64(0)
	for _, n := range s.units {
		users += integer(n)
	}
	if users != taken {
		return fmt.Errorf("users have %d units of %d that are held or sold", users, taken)
	}
	return nil
}

func integer(s string) int64 {
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil {
		panic(err)
	}
	return n
}

// replay applies the entries that came since the last time. Every version must be there.
func (w *witness) replay(entries []any) error {
	for _, e := range entries {
		id, fields := e.([]any)[0].(string), e.([]any)[1].([]any)
		var epoch, ver int64
		if _, err := fmt.Sscanf(id, "%d-%d", &epoch, &ver); err != nil {
			return err
		}
		if ver != w.ver+1 {
			return fmt.Errorf("the stream has a hole between version %d and %s", w.ver, id)
		}
		w.ver, w.read = ver, id
		w.stock["epoch"], w.stock["ver"] = strconv.FormatInt(epoch, 10), strconv.FormatInt(ver, 10)
		for i := 0; i < len(fields); i += 2 {
			name, value := fields[i].(string), fields[i+1].(string)
			switch {
			case len(name) > 2 && name[:2] == "r:":
				w.orders[name[2:]] = undated(value)
			case name == "op":
			case name == "added":
				w.stock[name] = strings.TrimSpace(w.stock[name] + " " + value)
			case name == "at":
			case value == "":
				delete(w.stock, name)
			default:
				w.stock[name] = value
			}
		}
	}
	return nil
}

// agree holds the replayed state against the keys. That a tombstone was forgotten the stream does not tell: whoever
// replays it may forget it at the same time.
func (w *witness) agree(s sight) error {
	maps.DeleteFunc(w.orders, func(serial, record string) bool {
		_, there := s.records[serial]
		return !there && (record[0] == 'X' || record[0] == 'R')
	})
	return errors.Join(
		differ("replayed numbers", w.stock, s.numbers),
		differ("replayed records", w.orders, s.records),
	)
}

// forget removes a SKU's keys, so that thousands of schedules need no memory.
func (w *witness) forget(sku string) error {
	return w.client.Unlink(context.Background(), keys(sku)...).Err()
}

// stage plays schedules on a Redis, each on a SKU of its own.
type stage struct {
	store  *Store
	client *redis.Client
	played int
}

// newStage is on a server with others, and has one connection: it makes one call after the other.
func newStage(t *testing.T, server *redistest.Server, texts map[string]string) *stage {
	t.Helper()
	r := testkit.Must[*Store](t)(open(optionsFor(server, 1), compile(texts)))
	t.Cleanup(func() { r.Close() })
	return &stage{store: r, client: server.Client}
}

func (s *stage) play(steps []step) error {
	s.played++
	w := newWitness(s.client)
	p := play{store: s.store, sku: s.store.instance + " " + strconv.Itoa(s.played), keys: w.look}
	p.model.instances = 1
	return errors.Join(p.run(context.Background(), steps), w.forget(p.sku))
}

func TestKeys_RedisDoesWhatTheModelDoes(t *testing.T) {
	t.Parallel()
	checks(t, int(rounds(1_000)))
	s := newStage(t, redistest.Start(t), texts())
	steps := schedules()
	rapid.Check(t, func(t *rapid.T) {
		if err := s.play(steps.Draw(t, "schedule")); err != nil {
			t.Fatal(err)
		}
	})
}
