package proxy

import (
	"sync/atomic"
	"time"

	"github.com/valyala/fasthttp"
)

// dates tells the time of day for responses, to the second. It is safe for concurrent use.
type dates struct{ last atomic.Pointer[date] }

type date struct {
	second int64 // of the monotonic clock
	text   []byte
}

// at is the time of day at an instant of the monotonic clock that is now, as RFC 9110, section 5.6.7, writes it.
func (d *dates) at(now int64) []byte {
	second := now / int64(time.Second)
	seen := d.last.Load()
	if seen == nil || seen.second != second {
		seen = &date{second, fasthttp.AppendHTTPDate(nil, time.Now())}
		d.last.Store(seen)
	}
	return seen.text
}
