package proxy

import "sluice/proxy/reject"

// checkStock asks the stock check, which counts the requests that it admits. It waits for what that has to read.
func (p *Proxy) checkStock(r *Request) rejection {
	reason, known := p.Stock.EnterAtOnce(p.Now(), r.buyer.sku, r.buyer.user)
	if !known {
		r.conn.StepAside()
		reason = p.Stock.Enter(p.Now(), r.buyer.sku, r.buyer.user)
	}
	switch reason {
	case reject.Admitted:
		r.acquired.stock, r.acquired.sku = true, r.buyer.sku
	case reject.Concurrency:
		r.limit = p.Unit
	}
	return rejection{Reason: reason}
}

// awaitReading waits for the reading of a SKU that is not known to be on sale. Requests for invented SKUs end here,
// before they take a place that an order needs.
func (p *Proxy) awaitReading(r *Request) rejection {
	reason, waited := p.Stock.AwaitReading(p.Now(), r.buyer.sku, r.conn)
	if waited {
		r.checked = p.Now()
	}
	return rejection{Reason: reason}
}

// checkSoldOut asks the stock check's memory.
func (p *Proxy) checkSoldOut(r *Request) rejection {
	return rejection{Reason: p.Stock.Closed(r.now, r.buyer.sku)}
}
