package proxy

import (
	"bytes"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/valyala/fasthttp"
)

// reply is an answer of the gate's own, put together as it is sent. In the HTTP library's form, in which the shop's answers
// and kept ones travel, a refusal would cost more than the decision.
type reply struct {
	status int    // 0 = there is none, or not yet
	fields []byte // lines, each with its end; none of framing
	body   []byte
	date   []byte // empty = none is told
	last   bool   // the connection ends with the answer, in whichever form that is
}

// keptReply is how much room for a body waits for the next reply.
const keptReply = 16 << 10

// begin makes a reply of a status that has these fields, and no others yet.
func (a *reply) begin(status int, fields, date []byte) {
	a.status, a.date = status, date
	a.fields, a.body = append(a.fields[:0], fields...), a.body[:0]
}

// add adds a field. Neither name nor value has a line end: what came from a client was judged, and configured texts are.
func (a *reply) add(name, value string) {
	a.fields = append(append(append(append(a.fields, name...), ": "...), value...), "\r\n"...)
}

func (a *reply) addBytes(name string, value []byte) {
	a.fields = append(append(append(append(a.fields, name...), ": "...), value...), "\r\n"...)
}

func (a *reply) say(text string)      { a.body = append(a.body, text...) }
func (a *reply) sayBytes(text []byte) { a.body = append(a.body, text...) }

func (a *reply) clear() {
	a.status, a.date, a.last = 0, nil, false
	if cap(a.body) > keptReply {
		a.body = nil
	}
}

// appendTo appends the whole answer; connection is the value of that field, "" = none.
func (a *reply) appendTo(dst []byte, connection string, bodiless bool) []byte {
	dst = strconv.AppendInt(append(dst, "HTTP/1.1 "...), int64(a.status), 10)
	dst = append(append(append(dst, ' '), fasthttp.StatusMessage(a.status)...), "\r\n"...)
	if len(a.date) > 0 {
		dst = append(append(append(dst, "Date: "...), a.date...), "\r\n"...)
	}
	dst = append(dst, a.fields...)
	// RFC 9110, sections 6.4.1 and 8.6: these two end with the head, and what followed would be read as the next answer.
	brief := a.status == fasthttp.StatusNoContent || a.status == fasthttp.StatusNotModified
	if !brief {
		dst = strconv.AppendInt(append(dst, "Content-Length: "...), int64(len(a.body)), 10)
		dst = append(dst, "\r\n"...)
	}
	if connection != "" {
		dst = append(append(append(dst, "Connection: "...), connection...), "\r\n"...)
	}
	dst = append(dst, "\r\n"...)
	if brief || bodiless {
		return dst
	}
	return append(dst, a.body...)
}

// answerNew begins an answer that has a tag; 304 where the client has the same. mark is what of the tag is looked for.
func (r *request) answerNew(tag, mark, contentType string) *reply {
	status := fasthttp.StatusOK
	if has := r.asked.Peek("If-None-Match"); string(has) == "*" || bytes.Contains(has, []byte(mark)) {
		status = fasthttp.StatusNotModified
	}
	a := r.answer(status, contentType)
	a.add("ETag", tag)
	return a
}

// answer begins an answer to a question that the gate answers itself.
func (r *request) answer(status int, contentType string) *reply {
	a := r.reply
	a.begin(status, nil, r.date())
	if status != fasthttp.StatusNotModified {
		a.add("Content-Type", contentType)
	}
	if len(r.id) > 0 {
		a.addBytes(r.proxy.idHeader, r.id)
	}
	r.drain()
	return a
}

// status is the answer's, in whichever form it is.
func (r *request) status() int {
	if r.reply.status != 0 {
		return r.reply.status
	}
	return r.resp.StatusCode()
}

// addBytes adds a field to the answer, in whichever form it is.
func (r *request) addBytes(name string, value []byte) {
	if r.reply.status != 0 {
		r.reply.addBytes(name, value)
		return
	}
	r.resp.Header.AddBytesV(name, value)
}

// drain passes over what is left of the request's body, or else has the connection end.
func (r *request) drain() {
	if !r.conn.reader.DrainBody() {
		r.conn.unread = true
		r.reply.last = true
	}
}

// date is the time of day when the request came, or when it was known what became of it at the shop.
func (r *request) date() []byte { return r.proxy.dates.at(max(r.now, r.answered)) }

// dates tells the time of day for answers, to the second. It is safe for concurrent use.
type dates struct{ now atomic.Pointer[date] }

type date struct {
	second int64 // of the monotonic clock
	text   []byte
}

// at is the time of day at an instant of the monotonic clock that is now, as RFC 9110, section 5.6.7, writes it.
func (d *dates) at(now int64) []byte {
	second := now / int64(time.Second)
	seen := d.now.Load()
	if seen == nil || seen.second != second {
		seen = &date{second, fasthttp.AppendHTTPDate(nil, time.Now())}
		d.now.Store(seen)
	}
	return seen.text
}
