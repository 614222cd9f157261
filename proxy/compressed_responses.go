package proxy

import (
	"log/slog"
	"sync"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/valyala/fasthttp"

	"sluice/internal/octets"
)

// UnreadBodies counts the responses whose body would decide and is compressed, so that nothing is read from it. The
// first one is logged. nil counts nothing. It is safe for concurrent use, and implements prometheus.Collector.
type UnreadBodies struct {
	count atomic.Uint64
	once  sync.Once
	log   *slog.Logger
}

// NewUnreadBodies makes one that has counted nothing.
func NewUnreadBodies(log *slog.Logger) *UnreadBodies { return &UnreadBodies{log: log} }

// compressed reports whether the body of resp is compressed, and counts it.
func (u *UnreadBodies) compressed(resp *fasthttp.Response) bool {
	coding := resp.Header.ContentEncoding()
	// Some upstreams write the charset there.
	if len(coding) == 0 || octets.EqualFold(coding, "identity") || octets.EqualFold(coding, "utf-8") {
		return false
	}
	if u != nil {
		u.count.Add(1)
		u.once.Do(func() {
			u.log.Warn("the upstream compresses a response whose body decides; nothing is read from it: an order stays held, "+
				"and sold out is not learnt", "content_encoding", string(coding), "status", resp.StatusCode(),
				"fix", "have the upstream, and what is before it, not compress where a request has no Accept-Encoding")
		})
	}
	return true
}

var unreadBodiesDesc = prometheus.NewDesc("sluice_upstream_compressed_responses_total",
	"Responses whose body would decide, by confirm_json or sold_out_on, and that were compressed: nothing was read.",
	nil, nil)

// Describe implements prometheus.Collector.
func (u *UnreadBodies) Describe(ch chan<- *prometheus.Desc) { ch <- unreadBodiesDesc }

// Collect implements prometheus.Collector.
func (u *UnreadBodies) Collect(ch chan<- prometheus.Metric) {
	ch <- prometheus.MustNewConstMetric(unreadBodiesDesc, prometheus.CounterValue, float64(u.count.Load()))
}
