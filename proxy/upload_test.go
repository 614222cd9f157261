package proxy

import (
	"io"
	"strings"
	"testing"
	"time"

	"github.com/valyala/fasthttp"
)

// A body that breaks on its way through is the client's fault, and told so; the shop's outcome says nothing of it.
func TestBrokenUploadIsTheClientsFault(t *testing.T) {
	shop := shopFunc(func(o *Outgoing, _ *fasthttp.Response) Outcome {
		if o.BodyStream == nil {
			t.Error("the body was not streamed")
		} else if _, err := io.Copy(io.Discard, o.BodyStream); err == nil {
			t.Error("the body did not break")
		}
		return Broken
	})
	long := strings.Repeat("x", 64<<10)
	for _, tt := range []struct {
		framing string
		status  int
		kind    string
	}{
		{"Transfer-Encoding: chunked\r\n\r\n10000\r\n" + long + "\r\nzz\r\n", 400, "bad_chunk_size"},
		{"Transfer-Encoding: chunked\r\n\r\n10000\r\n" + long + "\r\n0;x\r\n\r\n", 400, "chunk_extension"},
		{"Content-Length: 70000\r\n\r\n" + long, 408, ""},
	} {
		p := newProxy(t, options(shop))
		s, addr := serveWith(t, p, ServerOptions{ReadTimeout: 300 * time.Millisecond, IdleTimeout: time.Minute})
		resp, body := talk(t, addr, "POST /upload HTTP/1.1\r\nHost: s\r\n"+tt.framing)
		if resp.StatusCode != tt.status || !resp.Close {
			t.Errorf("%.60q: %d %s, want %d", tt.framing, resp.StatusCode, body, tt.status)
		}
		if tt.kind != "" && s.malformed[kindNamed(tt.kind)].Load() != 1 {
			t.Errorf("%.60q: not counted as %s", tt.framing, tt.kind)
		}
	}
}
