package proxy

import "sluice/proxy/reject"

// checkReadStock asks the stock check, which counts the requests that it admits, where that need not read.
func (p *Proxy) checkReadStock(r *Request) (no rejection, decided bool) {
	reason, known := p.Stock.EnterAtOnce(p.Now(), r.buyer.sku, r.buyer.user)
	if known {
		no = r.enteredStock(reason)
	}
	return no, known
}

// checkStock asks the stock check, and waits for what that has to read.
func (p *Proxy) checkStock(r *Request) rejection {
	return r.enteredStock(p.Stock.Enter(p.Now(), r.buyer.sku, r.buyer.user))
}

func (r *Request) enteredStock(reason reject.Reason) rejection {
	switch reason {
	case reject.Admitted:
		r.acquired.stock, r.acquired.sku = true, r.buyer.sku
	case reject.Concurrency:
		r.limit = r.proxy.Unit
	}
	return rejection{Reason: reason}
}

// checkSoldOut asks the stock check's memory.
func (p *Proxy) checkSoldOut(r *Request) rejection {
	return rejection{Reason: p.Stock.Closed(r.now, r.buyer.sku)}
}
