package layout

import (
	"context"
	"errors"
	"fmt"

	"github.com/redis/go-redis/v9"
)

// hash is the fields that a layout reads. Where their names have the SKU in them, many SKUs may be in one hash, as in
// "seckill:stocks" {1001: 500, 1002: 20}.
type hash struct {
	fields []KeyTemplate // the numbers, then the status where one is configured
	names  []string      // what they are called where no SKU is in them
	places []KeyTemplate // the key and the field of each number, with a colon between them
}

// compileHash reads the templates of the fields.
func (l *Layout) compileHash(o Options) error {
	h, named := &hash{}, l.numbers
	if o.StatusField != "" {
		named = append(named[:len(named):len(named)], NamedKey{Name: "status_field", Text: o.StatusField})
	}
	shared := false
	for i, n := range named {
		t, err := CompileKey(n.Name, "", n.Text)
		if err != nil {
			return err
		}
		h.fields, shared = append(h.fields, t), shared || t.Named()
		if i < len(l.numbers) {
			l.parts = max(l.parts, t.Parts())
		} else if parts := t.Parts(); parts > l.parts {
			return fmt.Errorf("%s %q: it names part %d of the SKU, and the key of the stock does not", n.Name, n.Text, parts)
		}
	}
	for _, n := range l.numbers {
		place, err := CompileKey(n.Name, o.Prefix, o.Key+":"+n.Text)
		if err != nil {
			return err
		}
		name, text := "key", o.Key
		if shared {
			name, text = n.Name, n.Text
		}
		if err := tells(name, text, place, l.parts); err != nil {
			return err
		}
		h.places = append(h.places, place)
	}
	if l.hash = h; !shared {
		for _, t := range h.fields {
			h.names = append(h.names, t.Of("", 0))
		}
	}
	return h.apart(named)
}

// apart rejects two fields of which neither says more than the other, and that may be one. Where one says more, as
// $(sku)_sold does beside $sku, it owns what both could be: see owns.
func (h *hash) apart(named []NamedKey) error {
	for i, t := range h.fields {
		for j, u := range h.fields[:i] {
			if t.Length() == u.Length() && !t.Apart(u) {
				return fmt.Errorf("%s %q, %s %q: they can be the same field; write names that differ before or behind "+
					"the SKU", named[j].Name, named[j].Text, named[i].Name, named[i].Text)
			}
		}
	}
	return nil
}

// owns reports whether the fields of sku are its own. With total_field = "$sku" and sold_field = "$(sku)_sold" the
// field 1001_sold belongs to the SKU 1001, and there is no SKU 1001_sold.
func (h *hash) owns(sku string, parts int) bool {
	if h.names != nil {
		return true
	}
	for i, t := range h.fields {
		field := t.Of(sku, parts)
		for j, u := range h.fields {
			if i != j && u.Length() > t.Length() && makes(u, field, parts) {
				return false
			}
		}
	}
	return true
}

// makes reports whether a template makes a text of some SKU.
func makes(t KeyTemplate, text string, parts int) bool {
	if !t.Named() {
		return t.Of("", 0) == text
	}
	_, ok := t.SKU(text, parts)
	return ok
}

// of returns the fields of a SKU.
func (h *hash) of(sku string, parts int) []string {
	if h.names != nil {
		return h.names
	}
	names := make([]string, len(h.fields))
	for i, t := range h.fields {
		names[i] = t.Of(sku, parts)
	}
	return names
}

// SharesHash reports whether one hash may hold many SKUs, so that one command reads them.
func (l *Layout) SharesHash() bool { return l.hash != nil && l.hash.names == nil }

// numbersOf are the fields of a SKU that hold numbers; none where the key is no hash.
func (l *Layout) numbersOf(sku string) []string {
	if l.hash == nil {
		return nil
	}
	return l.hash.of(sku, l.parts)[:len(l.numbers)]
}

// QueueHashes is Queue for many SKUs of a layout that shares hashes: one HMGET for each hash, then the other commands
// of each SKU.
func (l *Layout) QueueHashes(ctx context.Context, pipe redis.Pipeliner, skus []string) {
	keys, of := l.hashesOf(skus)
	for _, k := range keys {
		var fields []string
		for _, i := range of[k] {
			fields = append(fields, l.hash.of(skus[i], l.parts)...)
		}
		pipe.HMGet(ctx, k, fields...)
	}
	for _, sku := range skus {
		l.queueOthers(ctx, pipe, sku)
	}
}

// ReadHashes turns the answers to the commands of QueueHashes into readings.
func (l *Layout) ReadHashes(skus []string, answers []redis.Cmder) []Reading {
	out, width, others := make([]Reading, len(skus)), len(l.hash.fields), l.Commands()-1
	keys, of := l.hashesOf(skus)
	for n, k := range keys {
		values, err := answers[n].(*redis.SliceCmd).Result()
		if err == nil && len(values) != width*len(of[k]) {
			err = errors.New("HMGET was not answered in full")
		}
		for at, i := range of[k] {
			r, fault := Reading{}, err
			if fault == nil {
				r, fault = l.count(l.hash.of(skus[i], l.parts), values[at*width:(at+1)*width])
			}
			if fault != nil {
				r = Reading{Fault: fmt.Errorf("read %q: %w", k, fault)}
			}
			out[i] = l.readOthers(skus[i], r, answers[len(keys)+i*others:len(keys)+(i+1)*others])
		}
	}
	return out
}

// hashesOf are the keys of skus, each once, and the positions of the SKUs in each.
func (l *Layout) hashesOf(skus []string) (keys []string, of map[string][]int) {
	of = make(map[string][]int)
	for i, sku := range skus {
		k := l.Key(sku)
		if of[k] == nil {
			keys = append(keys, k)
		}
		of[k] = append(of[k], i)
	}
	return keys, of
}

// SKUOfField returns the SKU whose stock is in a field of a hash that SKUs share.
func (l *Layout) SKUOfField(hash, field string) (string, bool) {
	sku, ok := l.hash.places[0].SKU(hash+":"+field, l.parts)
	return sku, ok && l.Fits(sku) && l.Key(sku) == hash && l.numbersOf(sku)[0] == field
}
