package redisstore

import (
	"context"
	"errors"
	"fmt"

	"sluice/stockgate/ledger/protocol"
)

// Inspect reads a page in one script, so that it and the numbers belong together. most is how many entries a page has,
// about; 0 = the numbers alone.
func (r *Store) Inspect(ctx context.Context, sku string, part protocol.Part, cursor string, most int) (
	p protocol.Page, err error,
) {
	defer protocol.Describe(&err, "inspect", sku)
	if err := protocol.CheckSKU(sku); err != nil {
		return p, err
	}
	reply, err := r.call(ctx,
		&scriptCall{script: "audit", sku: sku, args: []any{string(part), cursor, most}, aside: true, blind: true})
	if err != nil {
		return p, err
	}
	return pageOf(reply)
}

// InspectAll reads the numbers alone of several ledgers, at most 64, in one round trip to each server. What it finds
// comes back by position.
func (r *Store) InspectAll(ctx context.Context, skus []string) []protocol.Inspection {
	all := r.callMany(ctx, skus, func(sku string) scriptCall {
		return scriptCall{
			script: "audit",
			sku:    sku,
			args:   []any{string(protocol.AllParts), protocol.FirstPage, 0},
			aside:  true,
			blind:  true,
			err:    protocol.CheckSKU(sku),
		}
	})
	found := make([]protocol.Inspection, len(all))
	for i := range all {
		q := &all[i]
		if found[i].Err = q.err; q.err == nil {
			found[i].Page, found[i].Err = pageOf(q.answer)
		}
		protocol.Describe(&found[i].Err, "inspect", q.sku)
	}
	return found
}

// pageOf reads what audit.lua says.
func pageOf(reply []any) (p protocol.Page, err error) {
	if len(reply) == 1 {
		return protocol.Page{Wrong: true}, nil
	}
	if len(reply) != 15 {
		return protocol.Page{}, fmt.Errorf("%d values came back for a page", len(reply))
	}
	p.Numbers, p.Next = rawOf(reply[1:8]), fmt.Sprint(reply[11])
	for _, v := range reply[8:11] {
		n, ok := v.(int64)
		if !ok {
			return protocol.Page{}, fmt.Errorf("the count %v cannot be read", v)
		}
		p.Entries += n
	}
	for i, to := range []*[]string{&p.Records, &p.Users, &p.Due} {
		list, ok := reply[12+i].([]any)
		if !ok {
			return protocol.Page{}, errors.New("a page is not a list")
		}
		for _, v := range list {
			*to = append(*to, fmt.Sprint(v))
		}
	}
	return p, nil
}

func rawOf(v []any) (n protocol.Numbers) {
	for i, to := range []*string{&n.Total, &n.Held, &n.Sold, &n.State, &n.Epoch, &n.Limit, &n.Ver} {
		*to = fmt.Sprint(v[i])
	}
	return n
}
