package cache

import (
	"bufio"
	"bytes"
	"fmt"
	"iter"
	"net/http"
	"slices"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/valyala/fasthttp"

	"sluice/proxy"
)

// answer is what the shop said, as it is given to others. It is never changed, but for that a newer one could not be
// had.
type answer struct {
	header fasthttp.ResponseHeader
	body   []byte
	says   directives
	vary   []string
	values []string // of the request's fields that vary names

	came  time.Time     // at the gate
	age   time.Duration // when it came (RFC 9111, section 4.2.3)
	fresh time.Duration // from when it came; without the bound that a route sets
	free  bool          // the shop says nothing of freshness: the route decides

	failed atomic.Int64 // when the shop last gave nothing newer, Unix ns; 0 = it has not been so
}

// newAnswer copies what the shop said; nil when it must not be kept for others (RFC 9111, section 3).
func newAnswer(page *proxy.Page, resp *fasthttp.Response, body []byte, asked, now time.Time) *answer {
	a := &answer{body: slices.Clone(body), came: now}
	resp.Header.CopyTo(&a.header)
	if !a.read(asked) || !a.ours() {
		return nil
	}
	for _, name := range a.vary {
		a.values = append(a.values, string(appendField(nil, page, name)))
	}
	a.complete()
	return a
}

// read takes in what the header says; ok is false when there is no time for which the answer may be given.
func (a *answer) read(asked time.Time) (ok bool) {
	a.says = directivesOf(&a.header)
	if a.vary, ok = varies(&a.header); !ok {
		return false
	}
	a.age = a.ageOf(asked)
	a.fresh, a.free = a.lifetime()
	return a.free || a.fresh > a.age
}

// ours reports whether others may have it: nothing that the shop forbids, no person's, no part.
func (a *answer) ours() bool {
	status := a.header.StatusCode()
	return !a.says.forbids &&
		!a.setsCookie() &&
		status >= 200 && status != fasthttp.StatusPartialContent && status != fasthttp.StatusNotModified &&
		(!a.says.mustUnderstand || http.StatusText(status) != "") &&
		(!a.free || heuristic(status))
}

func (a *answer) setsCookie() bool {
	for range a.header.Cookies() {
		return true
	}
	return false
}

// heuristic reports a status whose answers may be kept although nothing is said of it (RFC 9110, section 15.1).
func heuristic(status int) bool {
	switch status {
	case 200, 203, 204, 300, 301, 308, 404, 405, 410, 414, 501:
		return true
	}
	return false
}

// lifetime is the freshness lifetime (RFC 9111, section 4.2.1); free is that none is said.
func (a *answer) lifetime() (d time.Duration, free bool) {
	switch {
	case a.says.shared.said:
		return a.says.shared.d, false
	case a.says.maxAge.said:
		return a.says.maxAge.d, false
	}
	expires := a.header.PeekAll("Expires")
	if len(expires) == 0 || a.says.targeted {
		return 0, true
	}
	until, err := http.ParseTime(string(expires[0]))
	if err != nil || len(expires) > 1 { // "0" and the like: it has expired
		return 0, false
	}
	return max(until.Sub(a.date()), 0), false
}

// date is when the shop says that it answered.
func (a *answer) date() time.Time {
	if t, err := http.ParseTime(string(a.header.Peek("Date"))); err == nil {
		return t
	}
	return a.came
}

// ageOf is the corrected initial age. Dates count whole seconds: what is less than one is no age.
func (a *answer) ageOf(asked time.Time) time.Duration {
	first, _, _ := bytes.Cut(a.header.Peek("Age"), []byte(",")) // of a list the first counts (RFC 9111, section 5.1)
	said := seconds(bytes.TrimSpace(first))
	if said > 0 {
		said += a.came.Sub(asked)
	}
	if a.says.shared.said || a.says.maxAge.said || len(a.header.Peek("Expires")) > 0 {
		return max(said, a.came.Truncate(time.Second).Sub(a.date()), 0)
	}
	return said
}

// left is for how long it is fresh from now on, where a route lets it be so for most; below 0 = it is not.
func (a *answer) left(now time.Time, most time.Duration) time.Duration {
	lives := a.fresh - a.age
	if a.free {
		lives = most - a.age
	}
	return min(lives, most) - now.Sub(a.came)
}

func (a *answer) freshAt(now time.Time, most time.Duration) bool { return a.left(now, most) > 0 }

// usableAt reports whether it is fresh, or has been so until no longer ago than beyond.
func (a *answer) usableAt(now time.Time, most, beyond time.Duration) bool {
	return a.left(now, most)+beyond > 0
}

func (a *answer) whileRevalidate(s *staleness) time.Duration {
	return a.beyond(a.says.whileStale, s.whileRevalidate)
}

func (a *answer) ifError(s *staleness) time.Duration { return a.beyond(a.says.ifError, s.ifError) }

// beyond is what the shop allows, else what is configured; nothing where it forbids what is stale.
func (a *answer) beyond(said lifetime, usual time.Duration) time.Duration {
	switch {
	case a.says.noStale:
		return 0
	case said.said:
		return said.d
	}
	return usual
}

// pauseAtMost is how often at least a shop in trouble is asked for a page; less often than one that is well it never is
// asked for a page that is kept for less.
const pauseAtMost = time.Second

// spares reports whether the shop has just failed to give something newer: it is left in peace for a moment, else each
// answer of 5xx, or failed connection, would have the next one in the crowd ask again.
func (a *answer) spares(now time.Time, most time.Duration) bool {
	failed := a.failed.Load()
	return failed != 0 && now.Sub(time.Unix(0, failed)) < min(most, pauseAtMost)
}

// appendConditions appends the fields by which the shop may say that this is still its answer.
func (a *answer) appendConditions(dst []byte) []byte {
	if a == nil {
		return dst
	}
	if tag := a.header.Peek("Etag"); len(tag) > 0 {
		dst = append(append(append(dst, "If-None-Match: "...), tag...), "\r\n"...)
	}
	if since := a.header.Peek("Last-Modified"); len(since) > 0 {
		dst = append(append(append(dst, "If-Modified-Since: "...), since...), "\r\n"...)
	}
	return dst
}

// freshened is a with what a 304 says anew (RFC 9111, section 3.2); keep is whether others may have it still. A 304
// about another body than a's, by its strong ETag, changes nothing (section 4.3.4).
func (a *answer) freshened(h *fasthttp.ResponseHeader, asked, now time.Time) (n *answer, keep bool) {
	if tag := h.Peek("Etag"); bytes.HasPrefix(tag, []byte(`"`)) && !bytes.Equal(tag, a.header.Peek("Etag")) {
		return a, false
	}
	n = &answer{body: a.body, values: a.values, came: now}
	headerOf(a.header.StatusCode(), func(yield func(name, value []byte) bool) {
		for name, value := range a.header.All() {
			if (framing(name) || len(h.PeekBytes(name)) == 0) && !is(name, "Date") && !yield(name, value) {
				return
			}
		}
		for name, value := range h.All() {
			if !framing(name) && !yield(name, value) {
				return
			}
		}
	}).CopyTo(&n.header)
	keep = n.read(asked) && n.ours() && slices.Equal(n.vary, a.vary)
	n.complete()
	return n, keep
}

// headerOf makes a header of fields. It goes the way of fasthttp's reader, since its setters ignore Date.
func headerOf(status int, all iter.Seq2[[]byte, []byte]) *fasthttp.ResponseHeader {
	h := new(fasthttp.ResponseHeader)
	text := fmt.Appendf(nil, "HTTP/1.1 %d %s\r\nContent-Length: 0\r\n", status, fasthttp.StatusMessage(status))
	for name, value := range all {
		if !is(name, "Content-Length") && !is(name, "Connection") && !is(name, "Transfer-Encoding") {
			text = fmt.Appendf(text, "%s: %s\r\n", name, value)
		}
	}
	text = append(text, "\r\n"...)
	h.SetNoDefaultContentType(true)
	if err := h.Read(bufio.NewReaderSize(bytes.NewReader(text), len(text))); err != nil {
		panic("BUG: a header that was read before cannot be read: " + err.Error())
	}
	h.SetNoDefaultContentType(true)
	return h
}

// complete puts right what the header says of the time.
func (a *answer) complete() {
	a.header.Del("Age")
	if len(a.header.Peek("Date")) > 0 {
		return
	}
	headerOf(a.header.StatusCode(), func(yield func(name, value []byte) bool) {
		if !yield([]byte("Date"), a.came.UTC().AppendFormat(nil, http.TimeFormat)) { // RFC 9110, section 6.6.1
			return
		}
		for name, value := range a.header.All() {
			if !yield(name, value) {
				return
			}
		}
	}).CopyTo(&a.header)
}

func is(name []byte, other string) bool { return bytes.EqualFold(name, []byte(other)) }

// framing are fields that say how the 304 itself was sent, or of what form the kept body is.
func framing(name []byte) bool {
	for _, n := range []string{"Content-Length", "Content-Encoding", "Content-Range", "Content-Type", "Content-Md5",
		"Transfer-Encoding", "Connection", "Trailer", "Vary"} {
		if is(name, n) {
			return true
		}
	}
	return false
}

// serve writes the answer for page, or 304 when the client has it already. said is what Cache-Status tells (RFC 9211).
func (a *answer) serve(page *proxy.Page, resp *fasthttp.Response, now time.Time, said string) {
	resp.Reset()
	a.header.CopyTo(&resp.Header)
	age := int64((a.age + now.Sub(a.came)) / time.Second)
	var digits [20]byte
	resp.Header.SetBytesV("Age", strconv.AppendInt(digits[:0], age, 10))
	resp.Header.Add("Cache-Status", said)
	if a.header.StatusCode() == fasthttp.StatusOK && a.unchanged(page) {
		resp.SetStatusCode(fasthttp.StatusNotModified)
		resp.Header.SetStatusMessage(nil) // that of the status, not of the kept 200
		resp.Header.Del("Content-Encoding")
		resp.SkipBody = true
		return
	}
	resp.SetBodyRaw(a.body)
	resp.SkipBody = page.Head
}

// unchanged evaluates the client's own conditions (RFC 9110, section 13.2.2).
func (a *answer) unchanged(page *proxy.Page) bool {
	if page.Request.Peek("If-None-Match") != nil {
		for name, list := range page.Request.Fields {
			if bytes.EqualFold(name, []byte("If-None-Match")) && holdsTag(list, a.header.Peek("Etag")) {
				return true
			}
		}
		return false
	}
	asked := page.Request.Peek("If-Modified-Since")
	if len(asked) == 0 {
		return false
	}
	since, err := http.ParseTime(string(asked))
	if err != nil {
		return false
	}
	modified, err := http.ParseTime(string(a.header.Peek("Last-Modified")))
	return err == nil && !modified.After(since)
}

// holdsTag compares weakly (RFC 9110, section 8.8.3.2).
func holdsTag(list, tag []byte) bool {
	if bytes.Equal(bytes.TrimSpace(list), []byte("*")) {
		return true
	}
	tag = bytes.TrimPrefix(tag, []byte("W/"))
	if len(tag) < 2 {
		return false
	}
	for rest := list; len(rest) > 0; {
		_, after, ok := bytes.Cut(rest, []byte(`"`))
		if !ok {
			return false
		}
		inside, behind, ok := bytes.Cut(after, []byte(`"`))
		if !ok {
			return false
		}
		if bytes.Equal(inside, tag[1:len(tag)-1]) {
			return true
		}
		rest = behind
	}
	return false
}

// weight is about how many bytes the entry takes.
func (e *entry) weight() uint32 {
	n := 256 + len(e.key)
	if e.answer != nil {
		n += 512 + len(e.answer.body) + e.answer.header.Len()
		for name, value := range e.answer.header.All() {
			n += len(name) + len(value) + 32
		}
		for _, v := range e.answer.values { // a client sends them as long as it likes
			n += len(v) + 16
		}
	}
	return uint32(n)
}
