package metrics

import (
	"hash/maphash"
	"maps"
	"slices"
	"sync/atomic"
)

// SKUCount is what was counted of one SKU on the routes that guard stock.
type SKUCount struct {
	SKU       string // "" = all that have no name here
	Forwarded uint64 // requests that were sent to the upstream
	Rejected  uint64 // requests that were not
}

// HotSKU is a SKU that many requests ask for. The name is what clients sent, and need not be a SKU of the shop.
type HotSKU struct {
	SKU      string
	Requests uint64 // recent ones, forwarded or rejected, halved each minute; the true number may be higher
}

// skuTable are the SKUs that are counted by name, and all others together. Requests only read it.
type skuTable struct {
	named atomic.Pointer[map[string]skuCounts] // replaced when a name is added
	other skuCounts
}

// skuCounts are the requests for one SKU, with a place for each shard.
type skuCounts []skuShard

type skuShard struct {
	forwarded, rejected atomic.Uint64
	_                   [48]byte
}

func (c skuCounts) sum(sku string) SKUCount {
	n := SKUCount{SKU: sku}
	for i := range c {
		n.Forwarded += c[i].forwarded.Load()
		n.Rejected += c[i].rejected.Load()
	}
	return n
}

// CountSKU counts a request for sku that ended at now (monotonic ns). It allocates nothing and waits for nothing, and
// keeps no byte of sku but for a copy of its first 64.
func (s *Shard) CountSKU(sku []byte, forwarded bool, now int64) {
	counts, named := (*s.skus.named.Load())[string(sku)]
	if !named {
		counts = s.skus.other
	}
	if n := &counts[s.index]; forwarded {
		n.forwarded.Add(1)
	} else {
		n.rejected.Add(1)
	}
	s.hot.add(topKeyID{hash: maphash.Bytes(s.hot.seed, sku)}, now, func(dst []byte) []byte { return append(dst, sku...) })
}

// NameSKUs counts these SKUs by name from now on. A name stays until the process ends: the caller bounds them.
func (c *Counters) NameSKUs(skus ...string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	named := maps.Clone(*c.skus.named.Load())
	for _, sku := range skus {
		if named[sku] == nil {
			named[sku] = make(skuCounts, len(c.shards))
		}
	}
	c.skus.named.Store(&named)
}

// SKUCounts are the counts of the SKUs that have a name, by name, and then those of all others.
func (c *Counters) SKUCounts() []SKUCount {
	named := *c.skus.named.Load()
	all := make([]SKUCount, 0, len(named)+1)
	for _, sku := range slices.Sorted(maps.Keys(named)) {
		all = append(all, named[sku].sum(sku))
	}
	return append(all, c.skus.other.sum(""))
}

// HotSKUs lists the SKUs that most requests ask for, at most n, in falling order. now is in monotonic ns.
func (c *Counters) HotSKUs(n int, now int64) []HotSKU {
	most := c.mostCounted(n, now, func(s *Shard) *topKeys { return &s.hot })
	hot := make([]HotSKU, len(most))
	for i, k := range most {
		hot[i] = HotSKU{SKU: k.Key, Requests: k.Rejected}
	}
	return hot
}
