package proxy

import (
	"bytes"
	"net/url"
	"strconv"

	"sluice/internal/octets"
	"sluice/proxy/param"
	"sluice/proxy/reject"
)

// Availability answers public questions about a SKU's stock from memory. It never blocks on Redis.
type Availability interface {
	// Status tells what is known of sku at now (monotonic ns). It does not keep sku.
	Status(now int64, sku []byte) StockStatus

	// Time is now as Unix milliseconds of the clock that all instances share.
	Time(now int64) int64
}

// StockStatus is one SKU as shoppers may see it.
type StockStatus struct {
	Phase  Phase
	Free   int64 // units; below 0 = not known
	Opens  int64 // Unix ms, of NotStarted; 0 = not known
	Closes int64 // Unix ms; 0 = never
}

// Phase is the sale state of a SKU.
type Phase uint8

// The phases, in the order in which most SKUs pass through them.
const (
	Unknown    Phase = iota // the SKU, or its stock at the moment, is not known
	NotStarted              // it opens later
	InStock
	Paused  // by an operator or the shop
	SoldOut // no unit is free
	Ended   // it is not sold any more
	numPhases
)

// String is the phase as clients read it.
func (p Phase) String() string {
	return [numPhases]string{"unknown", "waiting", "open", "paused", "sold_out", "ended"}[p]
}

// StockStatusOptions say how much of the stock shoppers are told.
type StockStatusOptions struct {
	Exact bool  // the number
	Few   int64 // so many units or less are few; below 0 = nothing is said of what is left
}

// stockPath is where a page asks what is left: GET /.sluice/stock/{sku}, and of several GET /.sluice/stock?sku=a&sku=b.
const stockPath = "/.sluice/stock"

// maxStockQuery is how many SKUs one question may name.
const maxStockQuery = 20

func isStockPath(path []byte) bool {
	rest, ok := bytes.CutPrefix(path, []byte(stockPath))
	return ok && (len(rest) == 0 || rest[0] == '/')
}

// answerStock tells what is public about the stock of SKUs. It asks this process' memory alone.
func (p *Proxy) answerStock(r *Request) rejection {
	path, query := r.exchange.Request.Path(), r.exchange.Request.Query()
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
	tag := tag{octets.NewFingerprint()}
	for i, sku := range skus {
		s := p.Availability.Status(r.now, sku)
		if i > 0 || one {
			text = append(text, ',')
		}
		if !one {
			text = append(text, '{')
		}
		text = p.StockStatus.append(text, sku, s, at)
		if one && personal {
			text = p.appendOrderToken(text, r, s.Phase)
		}
		if !one {
			text = append(text, '}')
		}
		tag.add(p.StockStatus, sku, s)
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

// stockQuery reads which SKUs are asked for; nil = the query is not valid.
func stockQuery(path, query []byte) (skus [][]byte, one bool) {
	if name, ok := bytes.CutPrefix(path, []byte(stockPath+"/")); ok {
		sku, err := url.PathUnescape(string(name))
		if err != nil || !param.ValidSKU([]byte(sku)) {
			return nil, false
		}
		return [][]byte{[]byte(sku)}, true
	}
	asked, err := url.ParseQuery(string(query))
	if err != nil || len(asked["sku"]) > maxStockQuery {
		return nil, false
	}
	for _, sku := range asked["sku"] {
		if !param.ValidSKU([]byte(sku)) {
			return nil, false
		}
		skus = append(skus, []byte(sku))
	}
	return skus, false
}

// append writes the fields of one SKU.
func (o StockStatusOptions) append(dst, sku []byte, s StockStatus, at int64) []byte {
	dst = append(appendSKU(append(dst, `"sku":`...), sku), `,"phase":"`...)
	dst = append(append(dst, s.Phase.String()...), '"')
	if left := o.left(s); left != "" {
		dst = append(append(append(dst, `,"left":"`...), left...), '"')
		if o.Exact {
			dst = strconv.AppendInt(append(dst, `,"free":`...), max(s.Free, 0), 10)
		}
	}
	if s.Phase == NotStarted && s.Opens != 0 {
		dst = strconv.AppendInt(append(dst, `,"opens_at_ms":`...), s.Opens, 10)
		dst = strconv.AppendInt(append(dst, `,"opens_in_ms":`...), max(s.Opens-at, 0), 10)
	}
	if s.Closes != 0 && s.Phase != Ended {
		dst = strconv.AppendInt(append(dst, `,"closes_at_ms":`...), s.Closes, 10)
	}
	return dst
}

// left is how much is left, in a word; "" = it is not said.
func (o StockStatusOptions) left(s StockStatus) string {
	switch {
	case o.Few < 0 && !o.Exact:
		return ""
	case s.Phase == SoldOut, s.Phase == Ended && s.Free == 0:
		return "none"
	case s.Phase != InStock || s.Free < 0:
		return ""
	case s.Free <= o.Few:
		return "few"
	}
	return "many"
}

// appendSKU writes a SKU as JSON. param.ValidSKU admits only two bytes that JSON has to escape.
func appendSKU(dst, sku []byte) []byte {
	dst = append(dst, '"')
	for _, c := range sku {
		if c == '"' || c == '\\' {
			dst = append(dst, '\\')
		}
		dst = append(dst, c)
	}
	return append(dst, '"')
}

// tag is what an answer says, but for the time.
type tag struct{ octets.Fingerprint }

func (t *tag) add(o StockStatusOptions, sku []byte, s StockStatus) {
	t.AddString(string(sku))
	t.AddString(o.left(s))
	t.AddNumber(int64(s.Phase))
	t.AddNumber(s.Opens)
	t.AddNumber(s.Closes)
	if o.Exact && o.left(s) != "" {
		t.AddNumber(s.Free)
	}
}

// String is a weak ETag (RFC 9110, section 8.8.3): the time in the body differs each time.
func (t tag) String() string { return `W/"` + strconv.FormatUint(uint64(t.Fingerprint), 36) + `"` }

// writeStock sends the answer in r.scratch.text, or 304 where the client has it.
func (p *Proxy) writeStock(r *Request, at int64, t tag) {
	etag := t.String()
	out := r.taggedResponse(etag, etag[len("W/"):], "application/json")
	out.Add("Cache-Control", "public, max-age=1")
	out.Add("Sluice-Time", strconv.FormatInt(at, 10))
	out.Add("Vary", "Origin")
	p.responder.AllowOrigin(out, r.exchange.Request.Peek("Origin"))
	if out.Status == 200 {
		out.Write(r.scratch.text)
	}
}
