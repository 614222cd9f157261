package proxy

import (
	"io"

	"github.com/valyala/fasthttp"
)

// untilClose hands an answer whose length nobody knows to a client of HTTP/1.0, which knows no chunks: it ends with the
// connection (RFC 9112, section 6.3). The HTTP library would send chunks all the same; and to hold the answer whole
// instead would let such clients, slow to read, fill the memory.
func (p *Proxy) untilClose(r *request, resp *fasthttp.Response) {
	answer := resp.BodyStream()
	closer, ok := answer.(io.Closer)
	if !ok {
		closer = io.NopCloser(answer)
	}
	r.conn.beside = closer // the library hands over nothing when the client has left
	resp.Header.Del("Transfer-Encoding")
	resp.SetConnectionClose()
	c := r.conn
	c.afterwards = &afterwards{instead: true, do: func() {
		defer closer.Close()
		if _, err := c.Write(resp.Header.Header()); err == nil {
			_, _ = io.Copy(c, answer) // an answer cut short and a whole one look the same in HTTP/1.0
		}
	}}
}
