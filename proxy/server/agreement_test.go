package server

import (
	"bufio"
	"fmt"
	"io"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/valyala/fasthttp"

	"sluice/internal/octets"
)

var hostLineRE = regexp.MustCompile(`(?i)\r\nhost:([ -~\t]*)\r\n`)

// hostOf is the value of Host in a head; "" = there is none.
func hostOf(raw string) string {
	if m := hostLineRE.FindStringSubmatch(raw); m != nil {
		return strings.Trim(m[1], " \t")
	}
	return ""
}

// parsed has fasthttp and net/http read the request i of p, whose body came as body, and compares.
func (p played) parsed(t *testing.T, i int, body string) {
	t.Helper()
	m, head := p.whole[i], p.heads[i]
	parsedHead(t, m.head, head, p.told[i])
	parsedFields(t, m.head, p.told[i])
	parsedByNetHTTP(t, m.head, head, p.told[i])
	framing := ""
	switch {
	case head.Chunked:
		framing = "Transfer-Encoding: chunked\r\n"
	case head.ContentLength >= 0:
		framing = "Content-Length: " + strconv.FormatInt(head.ContentLength, 10) + "\r\n"
	}
	raw := "POST / HTTP/1.1\r\nHost: a\r\n" + framing + "\r\n" + body
	if content, left := netHTTPContent(t, raw); content != m.content || left != 0 {
		t.Fatalf("%q: net/http reads %q and leaves %d bytes, want %q", body, content, left, m.content)
	}
	if head.Chunked && longSize(body) {
		return // 16 digits are legal, and rejected by fasthttp: no harm
	}
	if content, left := fasthttpContent(t, raw); content != m.content || left != 0 {
		t.Fatalf("%q: fasthttp reads %q and leaves %d bytes, want %q", body, content, left, m.content)
	}
}

func parsedHead(t *testing.T, raw string, head Head, told string) {
	t.Helper()
	src := strings.NewReader(raw)
	br := bufio.NewReaderSize(src, len(raw)+1)
	var req fasthttp.Request
	req.Header.DisableNormalizing()
	if err := req.Header.Read(br); err != nil {
		t.Fatalf("%q: fasthttp: %v", raw, err)
	}
	fields := ""
	for name, value := range req.Header.AllInOrder() {
		fields += fmt.Sprintf("%s: %s\n", name, value)
	}
	if _, want, _ := strings.Cut(told, "\n"); fields != want {
		t.Fatalf("%q: fasthttp reads the fields %q, want %q", raw, fields, want)
	}
	m := requestLineRE.FindStringSubmatch(raw[:strings.Index(raw, "\r\n")])
	host := hostOf(raw)
	if h := &req.Header; string(h.Method()) != m[1] || string(h.RequestURI()) != m[2] || string(h.Host()) != host {
		t.Fatalf("%q: fasthttp reads %q %q for host %q", raw, h.Method(), h.RequestURI(), h.Host())
	}
	var uri fasthttp.URI
	if err := uri.Parse([]byte(host), []byte(m[2])); !strings.HasPrefix(m[2], "//") && host != "" &&
		(err != nil || string(uri.Host()) != strings.ToLower(host)) {
		t.Fatalf("%q: fasthttp reads the URI's host as %q, %v", raw, uri.Host(), err)
	}
	if req.MayContinue() && !head.HTTP10 && !head.Expect100 || req.Header.IsHTTP11() == head.HTTP10 {
		t.Fatalf("%q: fasthttp's expectation or version differs from %+v", raw, head)
	}
	length := req.Header.ContentLength() // -1 chunked, -2 none
	if head.Chunked != (length == -1) || !head.Chunked && max(length, -1) != int(head.ContentLength) {
		t.Fatalf("%q: fasthttp's length %d differs from %+v", raw, length, head)
	}
	if left := br.Buffered() + src.Len(); left != 0 {
		t.Fatalf("%q: fasthttp leaves %d bytes", raw, left)
	}
}

// parsedByNetHTTP compares a head with what net/http reads, where it does not reject the head.
func parsedByNetHTTP(t *testing.T, raw string, head Head, told string) {
	t.Helper()
	req, err := http.ReadRequest(bufio.NewReader(strings.NewReader(raw)))
	if err != nil {
		return
	}
	m := requestLineRE.FindStringSubmatch(raw[:strings.Index(raw, "\r\n")])
	if host := hostOf(raw); req.Method != m[1] || req.RequestURI != m[2] || !strings.EqualFold(req.Host, host) {
		t.Fatalf("%q: net/http reads %q %q for host %q", raw, req.Method, req.RequestURI, req.Host)
	}
	want := head.ContentLength
	if !head.Chunked {
		want = max(want, 0)
	}
	if req.ContentLength != want || (len(req.TransferEncoding) > 0) != head.Chunked {
		t.Fatalf("%q: net/http's length %d and coding %q differ from %+v", raw, req.ContentLength, req.TransferEncoding, head)
	}
	_, told, _ = strings.Cut(told, "\n")
	fields := http.Header{}
	for line := range strings.Lines(told) {
		name, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), ": ")
		fields.Add(name, value)
	}
	if got := fields.Values("Pragma"); len(got) > 0 && got[0] == "no-cache" && len(fields.Values("Cache-Control")) == 0 {
		fields.Set("Cache-Control", "no-cache") // RFC 9111, section 5.4
	}
	fields.Del("Host")
	fields.Del("Transfer-Encoding")
	if !maps.EqualFunc(req.Header, fields, slices.Equal) {
		t.Fatalf("%q: net/http reads the fields %q, want %q", raw, req.Header, fields)
	}
}

// parsedFields compares what a Request has told of its parts with what stands in its lines.
func parsedFields(t *testing.T, raw, told string) {
	t.Helper()
	first, fields, _ := strings.Cut(raw, "\r\n")
	want := first + " for " + hostOf(raw) + "\n"
	for line := range strings.SplitSeq(strings.TrimSuffix(strings.TrimSuffix(fields, "\r\n"), "\r\n"), "\r\n") {
		if line == "" {
			break // HTTP/1.0 without a field
		}
		name, value, _ := strings.Cut(line, ":")
		want += name + ": " + strings.Trim(value, " \t") + "\n"
	}
	if told != want {
		t.Fatalf("%q tells %q, want %q", raw, told, want)
	}
}

// fasthttpContent is the content that fasthttp reads out of a request, and how many bytes it leaves.
func fasthttpContent(t *testing.T, raw string) (content string, left int) {
	t.Helper()
	src := strings.NewReader(raw)
	br := bufio.NewReaderSize(src, 4096)
	var req fasthttp.Request
	if err := req.Header.Read(br); err != nil {
		t.Fatalf("%q: fasthttp: %v", raw, err)
	}
	length := req.Header.ContentLength()
	if length != -2 {
		if err := req.ReadBody(br, length, 1<<20); err != nil {
			t.Fatalf("%q: fasthttp's body: %v", raw, err)
		}
	}
	if length == -1 {
		if err := req.Header.ReadTrailer(br); err != nil {
			t.Fatalf("%q: fasthttp's trailer: %v", raw, err)
		}
	}
	return string(req.Body()), br.Buffered() + src.Len()
}

// netHTTPContent is the same by net/http.
func netHTTPContent(t *testing.T, raw string) (content string, left int) {
	t.Helper()
	src := strings.NewReader(raw)
	br := bufio.NewReader(src)
	req, err := http.ReadRequest(br)
	if err != nil {
		t.Fatalf("%q: net/http: %v", raw, err)
	}
	all, err := io.ReadAll(req.Body)
	if err != nil || len(req.Trailer) > 0 {
		t.Fatalf("%q: net/http's body: %v, trailer %v", raw, err, req.Trailer)
	}
	return string(all), br.Buffered() + src.Len()
}

// longSize reports whether a chunk size may have 16 digits.
func longSize(raw string) bool {
	digits := 0
	for i := range len(raw) {
		if octets.Unhex(raw[i]) > 15 {
			digits = 0
		} else if digits++; digits == 16 {
			return true
		}
	}
	return false
}
