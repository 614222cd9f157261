package reject

import (
	"testing"
	"time"

	"github.com/valyala/fasthttp"

	"sluice/proxy/server"
)

func BenchmarkResponder_Write(b *testing.B) {
	for name, accept := range map[string][]byte{"problem": program, "page": browser} {
		b.Run(name, func(b *testing.B) {
			r := responder(b, func(o *Options) { o.Jitter = time.Second })
			c := Case{
				Reason: Window, RequestID: []byte("0123456789abcdef0123456789abcdef"), SKU: []byte("1001"), Accept: accept,
				AcceptLanguage: []byte("zh-CN,zh;q=0.9,en;q=0.8"), RetryPath: []byte("/item?id=1&from=a"),
			}
			var out fasthttp.Response
			var text server.Prepared
			b.ReportAllocs()
			for b.Loop() {
				r.Write(&out, &text, &c)
			}
		})
	}
}
