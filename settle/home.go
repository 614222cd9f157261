package settle

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/redis/go-redis/v9"

	"sluice/stockgate/redisconn"
)

// Moved is the state of a cursor whose SKU is, or was, settled elsewhere since: its orders are old.
const Moved = "moved"

// homeField of a ledger's hash says where the SKU is settled: a number that each move raises, a blank, and the name.
// The first settler writes 0. firstField is the first epoch of a ledger that was made again, which has none of its own.
const (
	homeField  = "home"
	firstField = "first"
)

// Home is the one database in which some SKUs are settled.
type Home struct {
	Name string
	All  []string                // the names of all homes
	Of   func(sku string) string // the home of a SKU whose ledger has no mark; nil = all SKUs are here
}

// has reports whether a SKU is settled here.
func (h Home) has(sku string, l Ledger) bool { return h.Of == nil || h.Owner(sku, l) == h.Name }

// Owner is the home in which a SKU is settled: that of the mark, or that of the configuration.
func (h Home) Owner(sku string, l Ledger) string {
	if l.Home != "" || h.Of == nil {
		return l.Home
	}
	return h.Of(sku)
}

// isHere reports whether a SKU is settled here now.
func (s *Settler) isHere(ctx context.Context, sku string) (bool, error) {
	if s.o.Home.Of == nil {
		return true, nil
	}
	all, err := s.stream.Ledgers(ctx, []string{sku})
	if err != nil {
		return false, err
	}
	return s.claim(ctx, &skuCursor{sku: sku}, &all[0])
}

// claim writes the mark of this home into a ledger that has none: two settlers whose files name different homes of a
// SKU would book it twice. A ledger that was made again is told its first epoch, for a home that it is moved to. It
// reports whether the SKU is settled here.
func (s *Settler) claim(ctx context.Context, p *skuCursor, l *Ledger) (bool, error) {
	home := s.o.Home
	if home.Of == nil || l.Epoch == 0 || !home.has(p.sku, *l) {
		return home.has(p.sku, *l), nil
	}
	if err := s.load(ctx, p); err != nil {
		return false, err
	}
	to := l.knownTo(p.cursor)
	to.Home = home.Name
	if to.mark() == l.mark() && to.saysFirst() == l.first {
		return true, nil
	}
	err := s.stream.mark(ctx, p.sku, *l, to)
	if err != nil && !errors.Is(err, errMarked) {
		return false, err
	}
	all, err := s.stream.Ledgers(ctx, []string{p.sku})
	if err != nil {
		return false, err
	}
	if *l = all[0]; l.Home == "" {
		return false, ErrElsewhere // it is gone, and made again
	}
	return home.has(p.sku, *l), nil
}

// Disputes says why a home does not settle a SKU that its file gives to it, and the way out; "" = it is not so.
func (h Home) Disputes(sku string, l Ledger) string {
	if h.Of == nil || l.Home == "" || l.Home == h.Name || h.Of(sku) != h.Name {
		return ""
	}
	return fmt.Sprintf("%q is settled in %s, says the mark of its ledger, but the file says %s: %s books nothing of it; "+
		"write it into skus of %s, or move it: sluice-settle move %s --to %s", sku, l.Home, h.Name, h.Name, l.Home, sku,
		h.Name)
}

// knownTo is l as a home with the cursor c knows it: Redis may have lost a move, and the ledger its first epoch.
func (l Ledger) knownTo(c *Cursor) Ledger {
	if l = l.continuing(c); c != nil {
		l.moves = max(l.moves, c.Moves)
	}
	return l
}

// leave forgets a SKU that is settled elsewhere. The database is told once a move: its rows do not follow the ledger
// any more. It is told again when the ledger is on another server, which may have lost a move to here, and when the
// database has forgotten it.
func (s *Settler) leave(ctx context.Context, p *skuCursor) error {
	p.loaded, p.cursor = false, nil
	if home := p.ledger.Home; home != "" && !slices.Contains(s.o.Home.All, home) {
		return fmt.Errorf("settle %q: it was moved to %q, which is no home of the configuration: write its [[settle.home]], "+
			"or move it: sluice-settle move", p.sku, home)
	}
	if text := s.o.Home.Disputes(p.sku, p.ledger); text != p.disputed {
		if p.disputed = text; text != "" {
			s.log.Error("settle: the file and the mark of the ledger name different homes", "target", s.o.Target, "sku", p.sku,
				"fix", text)
		}
	}
	at := fmt.Sprintf("%d %s", p.ledger.moves, p.ledger.server)
	if m, ok := s.db.(Leaver); ok && s.o.Target == OrdersTarget && p.ledger.Home != "" && p.left != at {
		if back, err := s.takeBack(ctx, p); err != nil || back {
			return cmp.Or(err, ErrElsewhere)
		}
		left, err := m.Leave(ctx, p.sku)
		if err != nil {
			return err
		}
		if p.left = at; left {
			s.log.Warn("settle: the SKU was moved; its rows here do not change any more", "target", s.o.Target, "sku", p.sku,
				"home", s.o.Home.Name, "moved_to", p.ledger.Home)
		}
	}
	return ErrElsewhere
}

// takeBack puts the mark of this home back where Redis has lost the move to here: this database alone has all that was
// settled since. It reports whether that is so.
func (s *Settler) takeBack(ctx context.Context, p *skuCursor) (bool, error) {
	c, ok, err := s.db.Cursor(ctx, p.sku)
	to := p.ledger.knownTo(&c)
	if err != nil || !ok || c.State == Moved || to.moves == p.ledger.moves || to.Born != c.Born {
		return false, err
	}
	to.Home = s.o.Home.Name
	if err := s.stream.mark(ctx, p.sku, p.ledger, to); err != nil {
		return true, err
	}
	s.log.Error("settle: Redis has lost that the SKU was moved; it is settled here again", "sku", p.sku,
		"home", to.Home, "instead_of", p.ledger.Home)
	return true, nil
}

// Leaver is a database that marks the rows of a SKU that is settled elsewhere.
type Leaver interface {
	// Cursor reads the cursor of a SKU that it leaves; ok is false when there is none.
	Cursor(ctx context.Context, sku string) (c Cursor, ok bool, err error)

	// Leave sets the state of the SKU's cursors to moved. It reports whether there was one in another state.
	Leave(ctx context.Context, sku string) (bool, error)
}

// moveScript marks a new home, if the mark is still that of before, and the first epoch of a ledger; 0 = none.
const moveScript = `
if redis.call('EXISTS', KEYS[1]) == 0 then return -1 end
if (redis.call('HGET', KEYS[1], 'home') or '') ~= ARGV[1] then return 0 end
redis.call('HSET', KEYS[1], 'home', ARGV[2])
if ARGV[3] ~= '0' then redis.call('HSET', KEYS[1], 'first', ARGV[3]) end
return 1`

// errMarked means that the ledger has another mark than the one that was read.
var errMarked = errors.New("another command has moved it meanwhile")

// mark is that of l; "" = none.
func (l Ledger) mark() string {
	if l.Home == "" {
		return ""
	}
	return fmt.Sprintf("%d %s", l.moves, l.Home)
}

// saysFirst is the first epoch of a ledger that was made again; 0 = it was not, or it is not known.
func (l Ledger) saysFirst() int64 {
	if l.remade {
		return l.Born
	}
	return l.first
}

// mark replaces the mark of one ledger, as it was read, by that of another one.
func (s Stream) mark(ctx context.Context, sku string, before, after Ledger) error {
	var done int
	key := s.Name.SKUKey(sku, "s")
	err := s.Redis.To(key).Do(ctx, func(ctx context.Context, c redisconn.Commands) (err error) {
		done, err = redis.NewScript(moveScript).Run(ctx, c, []string{key}, before.mark(), after.mark(),
			after.saysFirst()).Int()
		return err
	}, redisconn.Unanswered)
	switch {
	case err == nil && done < 0:
		err = errors.New("it has no ledger")
	case err == nil && done == 0:
		err = errMarked
	}
	if err != nil {
		return fmt.Errorf("mark the home of %q: %w", sku, err)
	}
	return nil
}

// Move settles a SKU in another home from now on. The new home needs no rows of the old one, which may be down: it
// reads the ledger whole. Each step can be repeated; after the first one the settlers of the new home do the second,
// and those of the old one the third. unmarked says why the old database does not know yet.
//
// What the old home has settled, and Redis has lost since, only the old database knows.
func Move(ctx context.Context, stream Stream, to *Settler, from Leaver, sku string) (unmarked, err error) {
	all, err := stream.Ledgers(ctx, []string{sku})
	if err != nil {
		return nil, err
	}
	home := to.o.Home
	elsewhere := home.Owner(sku, all[0]) != home.Name || all[0].Epoch == 0
	if elsewhere { // or it was settled here since, and Redis has lost that
		back, err := to.takeBack(ctx, &skuCursor{sku: sku, ledger: all[0]})
		if err != nil {
			return nil, err
		}
		elsewhere = !back
	}
	if elsewhere {
		if old, ok := to.db.(Leaver); ok { // what was settled here before is old
			if _, err := old.Leave(ctx, sku); err != nil {
				return nil, err
			}
		}
		after := all[0]
		if from != nil { // else the settlers of the old home have told what it knows, or no one can
			if c, ok, err := from.Cursor(ctx, sku); err == nil && ok {
				after = after.knownTo(&c)
			}
		}
		after.Home, after.moves = home.Name, after.moves+1
		if err := stream.mark(ctx, sku, all[0], after); err != nil {
			return nil, err
		}
	}
	if _, err := to.Rebuild(ctx, sku); err != nil {
		return nil, err
	}
	if from == nil {
		return nil, nil
	}
	_, unmarked = from.Leave(ctx, sku)
	return unmarked, nil
}
