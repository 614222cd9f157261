package proxy

import (
	"strconv"

	"sluice/proxy/reject"
)

// answerStock tells what is public about the stock of SKUs. It asks this process' memory alone.
func (p *Proxy) answerStock(r *Request) rejection {
	path, query := r.head.Path, r.head.Query
	skus, one := stockQuery(path, query)
	if skus == nil {
		return badRequest(reject.QueryInvalid, "")
	}
	if one {
		r.buyer.sku = skus[0]
	}
	personal := p.wantsOrderToken(query)
	at := p.Availability.Time(r.now)
	text := append(r.scratch.text[:0], `{"server_time_ms":`...)
	text = strconv.AppendInt(text, at, 10)
	if !one {
		text = append(text, `,"stock":[`...)
	}
	tag := newStockTag()
	for i, sku := range skus {
		s := p.Availability.Status(r.now, sku)
		if i > 0 || one {
			text = append(text, ',')
		}
		if !one {
			text = append(text, '{')
		}
		text = p.StockStatus.Append(text, sku, s, at)
		if one && personal {
			text = p.appendOrderToken(text, r, s.Phase)
		}
		if !one {
			text = append(text, '}')
		}
		tag.Add(p.StockStatus, sku, s)
	}
	if !one {
		text = append(text, ']')
	}
	r.scratch.text = append(text, '}', '\n')
	if personal {
		p.writeOrderToken(r, at)
	} else {
		p.writeStock(r, at, tag)
	}
	return rejection{}
}

// writeStock sends the answer in r.scratch.text, or 304 where the client has it.
func (p *Proxy) writeStock(r *Request, at int64, t stockTag) {
	etag := t.String()
	out := r.taggedResponse(etag, etag[len("W/"):], "application/json")
	out.Header.Add("Cache-Control", "public, max-age=1")
	out.Header.Add("Sluice-Time", strconv.FormatInt(at, 10))
	out.Header.Add("Vary", "Origin")
	p.responder.AllowOrigin(r.conn.Prepared(), r.head.Peek("Origin"))
	if out.StatusCode() == 200 {
		out.AppendBody(r.scratch.text)
	}
}
