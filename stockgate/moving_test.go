package stockgate

import (
	"fmt"
	"strconv"
	"testing"

	"sluice/internal/redistest"
	"sluice/stockgate/layout"
	"sluice/stockgate/redisconn"
)

// A slot moves, and some keys of its SKUs are at the new master already, or at neither: a flag is seldom set.
func TestCluster_SKUWhoseKeysAreAtTwoMastersIsReadFromBoth(t *testing.T) {
	t.Parallel()
	nodes := redistest.Cluster(t, 2)
	for name, o := range map[string]layout.Options{
		"counter": {Type: layout.Counter, Key: "{c}:stock:$sku"},
		"list":    {Type: layout.List, Key: "{l}:stock:$sku"},
		"hash":    {Type: layout.HashLeft, Key: "{h}:stock", LeftField: "$sku"},
	} {
		o.StatusKey, o.StatusOpen, o.SoldOutFlag = o.Key[:3]+":status:$sku", []string{"1"}, o.Key[:3]+":gone:$sku"
		client, r := nodes.Client(), clustered(t, nodes, o)
		skus := make([]string, 12)
		for i := range skus {
			skus[i] = strconv.Itoa(1001 + i)
			client.Set(t.Context(), o.Key[:3]+":status:"+skus[i], 1, 0)
			if o.Type == layout.List {
				client.RPush(t.Context(), "{l}:stock:"+skus[i], 1, 2, 3, 4, 5)
			} else if err := r.Set(t.Context(), skus[i], 5); err != nil {
				t.Fatal(err)
			}
		}
		look := func(when string) {
			for range 3 {
				out := make([]layout.Reading, len(skus))
				if err := r.Read(t.Context(), skus, out); err != nil {
					t.Fatal(err)
				}
				for i, sku := range skus {
					if out[i].Fault != nil || out[i].Left != 5 || !out[i].OnSale {
						t.Errorf("%s, %s, %s: %+v", name, when, sku, out[i])
					}
				}
			}
		}
		slot := redistest.Slot(redisconn.Tag(o.Key))
		to := nodes.Masters[0]
		if nodes.Owner(slot) == to {
			to = nodes.Masters[1]
		}
		look("before")
		n := 0
		nodes.Move(slot, to, func() { n++; look(fmt.Sprint("part ", n)) })
		look("behind")
	}
}
