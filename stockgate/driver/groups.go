package driver

import "sync"

// mostSKUs is how many SKUs a decision of several round trips for each works on at once.
const mostSKUs = 8

// eachSKU has do work on the orders of each SKU, and returns when all is done. The orders of one SKU stay in one hand:
// an instance does not compete with itself.
func eachSKU(orders []*order, do func(of []*order)) {
	by := make(map[string][]*order)
	for _, o := range orders {
		by[o.sku] = append(by[o.sku], o)
	}
	room := make(chan struct{}, mostSKUs)
	var all sync.WaitGroup
	for _, of := range by {
		room <- struct{}{}
		all.Go(func() {
			defer func() { <-room }()
			do(of)
		})
	}
	all.Wait()
}
