package driver

import (
	"encoding/json"
	"strconv"
)

// newHashBought takes from a hash {goods_count, goods_bought_num} while its goods_status says that it is on sale: units,
// or 0. Where the shop keeps a list of orders, the same script appends this one to it.
func newHashBought(w way, k *keys, l Layout) decision {
	open := make([]any, len(l.StatusOpen))
	for i, status := range l.StatusOpen {
		open[i] = status
	}
	hash := hashOf{w, k, l.TotalField, l.SoldField, l.StatusField, l.StatusOpen}
	return &scripted{
		way: w, taking: read("hash_bought"), giving: read("hash_bought_back"),
		keys: func(o *order) []string {
			all := []string{k.stock.of(o)}
			if k.orders.Template != nil {
				all = append(all, k.orders.of(o))
			}
			return all
		},
		args: func(o *order) []any {
			return append([]any{o.quantity, l.TotalField, l.SoldField, listed(o), l.StatusField}, open...)
		},
		read: units, look: hash.look,
	}
}

// listed is the order as the shop's own consumer of the list reads it.
func listed(o *order) string {
	text, err := json.Marshal(struct {
		User  any   `json:"uid"`
		Goods any   `json:"goods_id"`
		Units int64 `json:"buy_num"`
		At    int64 `json:"order_time"` // Unix s
	}{numeric(o.user), numeric(o.sku), o.quantity, o.at})
	if err != nil {
		panic("BUG: an order that is no JSON: " + err.Error())
	}
	return string(text)
}

// numeric is a number where the text is one, as shops number users and goods.
func numeric(text string) any {
	if n, err := strconv.ParseInt(text, 10, 64); err == nil && strconv.FormatInt(n, 10) == text {
		return n
	}
	return text
}
