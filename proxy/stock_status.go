package proxy

import (
	"bytes"
	"net/url"
	"strconv"

	"sluice/internal/octets"
	"sluice/proxy/param"
	"sluice/proxy/reject"
)

// StockStatus is one SKU as shoppers may see it.
type StockStatus struct {
	Phase  StockPhase
	Free   int64 // units; below 0 = not known
	Opens  int64 // Unix ms, of PhaseNotStarted; 0 = not known
	Closes int64 // Unix ms; 0 = never
}

// StockPhase is the sale state of a SKU.
type StockPhase uint8

// The phases, in the order in which most SKUs pass through them.
const (
	PhaseUnknown    StockPhase = iota // the SKU, or its stock at the moment, is not known
	PhaseNotStarted                   // it opens later
	PhaseInStock
	PhasePaused  // by an operator or the shop
	PhaseSoldOut // no unit is free
	PhaseEnded   // it is not sold any more
	numPhases
)

// String is the phase as clients read it.
func (s StockPhase) String() string {
	return [numPhases]string{"unknown", "waiting", "open", "paused", "sold_out", "ended"}[s]
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

// isStockPath reports whether a path asks for the stock.
func isStockPath(path []byte) bool {
	rest, ok := bytes.CutPrefix(path, []byte(stockPath))
	return ok && (len(rest) == 0 || rest[0] == '/')
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

// Append writes the fields of one SKU.
func (s StockStatusOptions) Append(dst, sku []byte, status StockStatus, at int64) []byte {
	dst = append(appendSKU(append(dst, `"sku":`...), sku), `,"phase":"`...)
	dst = append(append(dst, status.Phase.String()...), '"')
	if left := s.left(status); left != "" {
		dst = append(append(append(dst, `,"left":"`...), left...), '"')
		if s.Exact {
			dst = strconv.AppendInt(append(dst, `,"free":`...), max(status.Free, 0), 10)
		}
	}
	if status.Phase == PhaseNotStarted && status.Opens != 0 {
		dst = strconv.AppendInt(append(dst, `,"opens_at_ms":`...), status.Opens, 10)
		dst = strconv.AppendInt(append(dst, `,"opens_in_ms":`...), max(status.Opens-at, 0), 10)
	}
	if status.Closes != 0 && status.Phase != PhaseEnded {
		dst = strconv.AppendInt(append(dst, `,"closes_at_ms":`...), status.Closes, 10)
	}
	return dst
}

// left is how much is left, in a word; "" = it is not said.
func (s StockStatusOptions) left(status StockStatus) string {
	switch {
	case s.Few < 0 && !s.Exact:
		return ""
	case status.Phase == PhaseSoldOut, status.Phase == PhaseEnded && status.Free == 0:
		return "none"
	case status.Phase != PhaseInStock || status.Free < 0:
		return ""
	case status.Free <= s.Few:
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

// stockTag is what an answer says, but for the time.
type stockTag struct{ sum octets.Fingerprint }

// newStockTag is the tag of an answer about no SKU.
func newStockTag() stockTag { return stockTag{octets.NewFingerprint()} }

// Add takes in what is said of one SKU.
func (s *stockTag) Add(o StockStatusOptions, sku []byte, status StockStatus) {
	s.sum.AddString(string(sku))
	s.sum.AddString(o.left(status))
	s.sum.AddNumber(int64(status.Phase))
	s.sum.AddNumber(status.Opens)
	s.sum.AddNumber(status.Closes)
	if o.Exact && o.left(status) != "" {
		s.sum.AddNumber(status.Free)
	}
}

// String is a weak ETag (RFC 9110, section 8.8.3): the time in the body differs each time.
func (s stockTag) String() string { return `W/"` + strconv.FormatUint(uint64(s.sum), 36) + `"` }

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
