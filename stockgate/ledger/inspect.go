package ledger

import (
	"context"
	"errors"
	"fmt"
	"strconv"
)

// page is some of what a ledger counts, and its numbers at the same moment: all as it lies in the store, unjudged.
type page struct {
	raw
	wrong   bool     // a key is of another type; then there is nothing else
	entries int64    // how many there are in all: records, users, times
	next    string   // cursor; firstPage when the part is at its end, "" when all is more than a page
	records []string // serial, record, ...
	users   []string // user, units, ...
	due     []string // serials that a sweep looks at
}

// raw are a ledger's numbers as text; "" = missing.
type raw struct{ total, held, sold, state, epoch, limit, ver string }

// none reports whether there is nothing at all.
func (p *page) none() bool { return p.raw == raw{} && !p.wrong && p.entries == 0 }

// part is what a page is of.
type part string

const (
	allParts    part = "" // if that is not more than a page; all of it is of one moment then
	partRecords part = "r"
	partUsers   part = "u"
	partDue     part = "x"
)

const (
	firstPage = "0"
	pageSize  = 256 // entries
)

// inspected is a store whose ledgers can be audited: a Redis or a Memory. most is how many entries a page has, about;
// 0 = the numbers alone.
type inspected interface {
	inspect(ctx context.Context, sku string, p part, cursor string, most int) (page, error)

	// inspectAll reads the numbers alone of several ledgers, at most 64. What it finds comes back by position.
	inspectAll(ctx context.Context, skus []string) []inspection
}

// inspection is what came of a page.
type inspection struct {
	page
	err error
}

// inspect reads a page in one script, so that it and the numbers belong together.
func (r *Redis) inspect(ctx context.Context, sku string, p part, cursor string, most int) (page, error) {
	if err := checkSKU(sku); err != nil {
		return page{}, fmt.Errorf("inspect %q: %w", sku, err)
	}
	reply, err := r.ask(ctx, &errand{script: "audit", sku: sku, args: []any{string(p), cursor, most}, aside: true, blind: true})
	if err != nil {
		return page{}, fmt.Errorf("inspect %q: %w", sku, err)
	}
	found, err := pageOf(reply)
	if err != nil {
		return page{}, fmt.Errorf("inspect %q: %w", sku, err)
	}
	return found, nil
}

// inspectAll makes one round trip to each server.
func (r *Redis) inspectAll(ctx context.Context, skus []string) []inspection {
	all := r.askAll(ctx, skus, func(sku string) errand {
		return errand{script: "audit", sku: sku, args: []any{string(allParts), firstPage, 0}, aside: true, blind: true, err: checkSKU(sku)}
	}, nil)
	found := make([]inspection, len(all))
	for i := range all {
		q := &all[i]
		if q.err == nil {
			found[i].page, q.err = pageOf(q.answer)
		}
		if q.err != nil {
			found[i].err = fmt.Errorf("inspect %q: %w", q.sku, q.err)
		}
	}
	return found
}

// pageOf reads what audit.lua says.
func pageOf(reply []any) (p page, err error) {
	if len(reply) == 1 {
		return page{wrong: true}, nil
	}
	if len(reply) != 15 {
		return page{}, fmt.Errorf("%d values came back for a page", len(reply))
	}
	p.raw, p.next = rawOf(reply[1:8]), fmt.Sprint(reply[11])
	for _, v := range reply[8:11] {
		n, ok := v.(int64)
		if !ok {
			return page{}, fmt.Errorf("the count %v cannot be read", v)
		}
		p.entries += n
	}
	for i, to := range []*[]string{&p.records, &p.users, &p.due} {
		list, ok := reply[12+i].([]any)
		if !ok {
			return page{}, errors.New("a page is not a list")
		}
		for _, v := range list {
			*to = append(*to, fmt.Sprint(v))
		}
	}
	return p, nil
}

func rawOf(v []any) raw {
	text := func(i int) string { return fmt.Sprint(v[i]) }
	return raw{total: text(0), held: text(1), sold: text(2), state: text(3), epoch: text(4), limit: text(5), ver: text(6)}
}

// inspect shows all at once, whatever is asked for.
func (m *Memory) inspect(ctx context.Context, sku string, _ part, _ string, _ int) (page, error) {
	if err := errors.Join(ctx.Err(), checkSKU(sku)); err != nil {
		return page{}, fmt.Errorf("inspect %q: %w", sku, err)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	b := m.books[sku]
	if b == nil {
		return page{next: firstPage}, nil
	}
	return b.inspect(), nil
}

// inspectAll shows all of each.
func (m *Memory) inspectAll(ctx context.Context, skus []string) []inspection {
	found := make([]inspection, len(skus))
	for i, sku := range skus {
		found[i].page, found[i].err = m.inspect(ctx, sku, allParts, firstPage, 0)
	}
	return found
}

func (b *book) inspect() page {
	text := func(n int64) string { return strconv.FormatInt(n, 10) }
	p := page{next: firstPage, entries: int64(len(b.records) + len(b.units) + len(b.due))}
	p.raw = raw{text(b.Total), text(b.Held), text(b.Sold), string(b.State), text(b.Epoch), text(b.Limit), text(b.Ver)}
	for serial, r := range b.records {
		p.records = append(p.records, serial, fmt.Sprintf("%c|%d|%d|%s", r.Status, r.Quantity, r.Deadline, r.User))
	}
	for user, n := range b.units {
		p.users = append(p.users, user, text(n))
	}
	for serial := range b.due {
		p.due = append(p.due, serial)
	}
	return p
}
