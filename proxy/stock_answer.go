package proxy

import (
	"bytes"
	"net/url"
	"strconv"
	"time"
)

// stockPath is where a page asks what is left: GET /.sluice/stock/{sku}, and of several GET /.sluice/stock?sku=a&sku=b.
const stockPath = "/.sluice/stock"

// mostAsked is how many SKUs one question may name.
const mostAsked = 20

func asksStock(target []byte) bool {
	rest, ok := bytes.CutPrefix(target, []byte(stockPath))
	return ok && (len(rest) == 0 || rest[0] == '/' || rest[0] == '?')
}

// answerStock tells what everybody may know, and costs nobody but this process anything.
func (p *Proxy) answerStock(r *request) (reason Reason, wait time.Duration) {
	path, query := splitTarget(r.asked.Target())
	r.path, r.query = path, query
	skus, one := stockAsked(path, query)
	if skus == nil {
		return BadRequest, 0
	}
	if one {
		r.sku = skus[0]
	}
	personal := p.wantsTicket(query)
	at := p.shelf.Time(r.now)
	text := append(r.text[:0], `{"server_time_ms":`...)
	text = strconv.AppendInt(text, at, 10)
	if !one {
		text = append(text, `,"stock":[`...)
	}
	tag := newTag()
	for i, sku := range skus {
		s := p.shelf.Show(r.now, sku)
		if i > 0 || one {
			text = append(text, ',')
		}
		if !one {
			text = append(text, '{')
		}
		text = p.show.append(text, sku, s, at)
		if one && personal {
			text = p.appendTicket(text, r, s.Phase)
		}
		if !one {
			text = append(text, '}')
		}
		tag.add(p.show, sku, s)
	}
	if !one {
		text = append(text, ']')
	}
	r.text = append(text, '}', '\n')
	if personal {
		p.writeTicket(r, at)
	} else {
		p.writeStock(r, at, tag)
	}
	return Admitted, 0
}

// stockAsked reads which SKUs are asked for; nil = the question is not understood.
func stockAsked(path, query []byte) (skus [][]byte, one bool) {
	if name, ok := bytes.CutPrefix(path, []byte(stockPath+"/")); ok {
		sku, err := url.PathUnescape(string(name))
		if err != nil || !ValidSKU([]byte(sku)) {
			return nil, false
		}
		return [][]byte{[]byte(sku)}, true
	}
	asked, err := url.ParseQuery(string(query))
	if err != nil || len(asked["sku"]) > mostAsked {
		return nil, false
	}
	for _, sku := range asked["sku"] {
		if !ValidSKU([]byte(sku)) {
			return nil, false
		}
		skus = append(skus, []byte(sku))
	}
	return skus, false
}

// append writes the fields of one SKU.
func (w Show) append(dst, sku []byte, s Shown, at int64) []byte {
	dst = append(appendText(append(dst, `"sku":`...), sku), `,"phase":"`...)
	dst = append(append(dst, s.Phase.String()...), '"')
	if left := w.left(s); left != "" {
		dst = append(append(append(dst, `,"left":"`...), left...), '"')
		if w.Exact {
			dst = strconv.AppendInt(append(dst, `,"free":`...), max(s.Free, 0), 10)
		}
	}
	if s.Phase == Waiting && s.Opens != 0 {
		dst = strconv.AppendInt(append(dst, `,"opens_at_ms":`...), s.Opens, 10)
		dst = strconv.AppendInt(append(dst, `,"opens_in_ms":`...), max(s.Opens-at, 0), 10)
	}
	if s.Closes != 0 && s.Phase != Over {
		dst = strconv.AppendInt(append(dst, `,"closes_at_ms":`...), s.Closes, 10)
	}
	return dst
}

// left is how much is left, in a word; "" = it is not told.
func (w Show) left(s Shown) string {
	switch {
	case w.Few < 0 && !w.Exact:
		return ""
	case s.Phase == Gone, s.Phase == Over && s.Free == 0:
		return "none"
	case s.Phase != Open || s.Free < 0:
		return ""
	case s.Free <= w.Few:
		return "few"
	}
	return "many"
}

// appendText writes a SKU as JSON. ValidSKU lets only two bytes through that JSON would not bear.
func appendText(dst, sku []byte) []byte {
	dst = append(dst, '"')
	for _, c := range sku {
		if c == '"' || c == '\\' {
			dst = append(dst, '\\')
		}
		dst = append(dst, c)
	}
	return append(dst, '"')
}

// tag is what an answer says, but for the time, in 64 bits (FNV-1a): all instances have the same one.
type tag uint64

func newTag() tag { return 14695981039346656037 }

func (t *tag) bytes(b string) {
	for i := range len(b) {
		*t = (*t ^ tag(b[i])) * 1099511628211
	}
	*t = (*t ^ 0xff) * 1099511628211 // a byte that ends each part
}

func (t *tag) number(n int64) {
	for i := range 8 {
		*t = (*t ^ tag(byte(n>>(8*i)))) * 1099511628211
	}
}

func (t *tag) add(w Show, sku []byte, s Shown) {
	t.bytes(string(sku))
	t.bytes(w.left(s))
	t.number(int64(s.Phase))
	t.number(s.Opens)
	t.number(s.Closes)
	if w.Exact && w.left(s) != "" {
		t.number(s.Free)
	}
}

// String is a weak ETag (RFC 9110, section 8.8.3): the time in the body differs each time.
func (t tag) String() string { return `W/"` + strconv.FormatUint(uint64(t), 36) + `"` }

// writeStock sends the answer in r.text, or 304 where the client has it.
func (p *Proxy) writeStock(r *request, at int64, t tag) {
	etag := t.String()
	out := r.answerNew(etag, etag[len("W/"):], "application/json")
	out.add("Cache-Control", "public, max-age=1")
	out.add("Sluice-Time", strconv.FormatInt(at, 10))
	if p.answers.CORS {
		out.add("Access-Control-Allow-Origin", "*") // nothing in it is anybody's own
		out.add("Access-Control-Expose-Headers", "ETag, Sluice-Time")
	}
	if out.status == 200 {
		out.sayBytes(r.text)
	}
}
