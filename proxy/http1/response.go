package http1

import (
	"strconv"

	"github.com/valyala/fasthttp"

	"sluice/internal/octets"
)

// Response is an answer of the handler's own, put together as it is sent. In fasthttp's form, in which the upstream's
// answers travel, a rejection would cost more than the decision. The zero value is none.
type Response struct {
	Status int  // 0 = there is none, or not yet
	Close  bool // the connection ends with the answer, whichever form that has

	fields []byte // lines, each with its end; none of framing
	body   []byte
	date   []byte // empty = none is sent
}

// maxKeptBody is the size up to which the buffer for a body is kept for the next response, in bytes.
const maxKeptBody = 16 << 10

// Begin makes it a response of a status with these header lines, each with its CRLF, and an empty body. date is the
// value of Date; empty = none is sent. lines is copied, date is not.
func (a *Response) Begin(status int, lines, date []byte) {
	a.Status, a.date = status, date
	a.fields, a.body = append(a.fields[:0], lines...), a.body[:0]
}

// Add adds a header field. Neither name nor value may hold a line end.
func (a *Response) Add(name, value string) {
	a.fields = octets.AppendField(a.fields, name, value)
}

// AddBytes is Add of a value in bytes.
func (a *Response) AddBytes(name string, value []byte) {
	a.fields = octets.AppendField(a.fields, name, value)
}

// WriteString appends to the body.
func (a *Response) WriteString(text string) { a.body = append(a.body, text...) }

// Write appends to the body.
func (a *Response) Write(text []byte) { a.body = append(a.body, text...) }

// Body is the body so far. It is valid until the next call.
func (a *Response) Body() []byte { return a.body }

// Reset makes it none, and keeps its buffers.
func (a *Response) Reset() {
	a.Status, a.date, a.Close = 0, nil, false
	if cap(a.body) > maxKeptBody {
		a.body = nil
	}
}

// AppendTo appends the whole response as it is sent. connection is the value of Connection, "" = none; head is true
// for an answer to HEAD, which ends with its head.
func (a *Response) AppendTo(dst []byte, connection string, head bool) []byte {
	dst = strconv.AppendInt(append(dst, "HTTP/1.1 "...), int64(a.Status), 10)
	dst = append(append(append(dst, ' '), fasthttp.StatusMessage(a.Status)...), "\r\n"...)
	if len(a.date) > 0 {
		dst = octets.AppendField(dst, "Date", a.date)
	}
	dst = append(dst, a.fields...)
	// RFC 9110, sections 6.4.1 and 8.6: these two end with the head, and what followed would be read as the next answer.
	bodiless := a.Status == fasthttp.StatusNoContent || a.Status == fasthttp.StatusNotModified
	if !bodiless {
		dst = strconv.AppendInt(append(dst, "Content-Length: "...), int64(len(a.body)), 10)
		dst = append(dst, "\r\n"...)
	}
	if connection != "" {
		dst = octets.AppendField(dst, "Connection", connection)
	}
	dst = append(dst, "\r\n"...)
	if bodiless || head {
		return dst
	}
	return append(dst, a.body...)
}
