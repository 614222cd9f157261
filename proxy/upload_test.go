package proxy

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/valyala/fasthttp"

	"sluice/internal/testkit"
	"sluice/upstream"
)

// A body that breaks on its way through is the client's fault, and told so; the upstream's outcome says nothing of it.
func TestUpload_BrokenBodyIsTheClientsFault(t *testing.T) {
	to := upstreamFunc(func(o *upstream.Request, _ *fasthttp.Response) upstream.Outcome {
		if !o.HTTP.IsBodyStream() {
			t.Error("the body was not streamed")
		} else if _, err := io.Copy(io.Discard, o.HTTP.BodyStream()); err == nil {
			t.Error("the body did not break")
		}
		return upstream.Broken
	})
	long := strings.Repeat("x", 64<<10)
	for _, tt := range []struct {
		framing string
		status  int
		rule    string
	}{
		{"Transfer-Encoding: chunked\r\n\r\n10000\r\n" + long + "\r\nzz\r\n", 400, "bad_chunk_size"},
		{"Transfer-Encoding: chunked\r\n\r\n10000\r\n" + long + "\r\n0;x\r\n\r\n", 400, "chunk_extension"},
		{"Content-Length: 70000\r\n\r\n" + long, 408, ""},
	} {
		p, err := New(options(to))
		if err != nil {
			t.Fatal(err)
		}
		s, addr := serveWith(t, p, ServerOptions{ReadTimeout: 2 * time.Second, IdleTimeout: time.Minute})
		resp, body := talk(t, addr, "POST /upload HTTP/1.1\r\nHost: s\r\n"+tt.framing)
		if resp.StatusCode != tt.status || !resp.Close {
			t.Errorf("%.60q: %d %s, want %d", tt.framing, resp.StatusCode, body, tt.status)
		}
		if tt.rule == "" {
			continue
		}
		if n := testkit.Series(t, s)["sluice_malformed_requests_total "+tt.rule]; n != 1 {
			t.Errorf("%.60q: counted %v times as %s, want once", tt.framing, n, tt.rule)
		}
	}
}

// A client that uploads slowly takes no connection to the upstream before its body is here.
func TestUpload_SlowBodyIsReadBeforeItIsSent(t *testing.T) {
	const size = maxBuffered
	sent := make(chan bool, 1)
	to := upstreamFunc(func(o *upstream.Request, resp *fasthttp.Response) upstream.Outcome {
		sent <- !o.HTTP.IsBodyStream() && len(o.HTTP.Body()) == size
		resp.SetStatusCode(200)
		return upstream.Answered
	})
	p, err := New(options(to))
	if err != nil {
		t.Fatal(err)
	}
	_, addr := serveWith(t, p, ServerOptions{ReadTimeout: time.Minute, IdleTimeout: time.Minute})
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	half := strings.Repeat("x", size/2)
	fmt.Fprintf(c, "POST /upload HTTP/1.1\r\nHost: s\r\nContent-Length: %d\r\n\r\n%s", size, half)
	testkit.Eventually(t, "half of it is read", func() bool { return p.counters.BodyMemory().Load() >= size/2 })
	if len(sent) > 0 {
		t.Fatal("it was sent before it was here")
	}
	fmt.Fprint(c, half)
	if resp, err := http.ReadResponse(bufio.NewReader(c), nil); err != nil || resp.StatusCode != 200 {
		t.Errorf("%v, %v", resp, err)
	}
	if whole := <-sent; !whole {
		t.Error("the upstream waits for the client")
	}
}
