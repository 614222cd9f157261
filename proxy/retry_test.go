package proxy

import (
	"math"
	"strconv"
	"strings"
	"testing"
	"time"
)

// However small a rate is configured, Retry-After is a number of seconds that is not in the past.
func TestRetryAfterIsNeverBelowZero(t *testing.T) {
	o := options(&seen{})
	o.Responses.Jitter = time.Hour
	o.Windows = faraway{}
	addr, _ := gate(t, o)
	resp, body := talk(t, addr, "GET /search/ HTTP/1.1\r\nHost: s\r\nAccept: application/json\r\nConnection: close\r\n\r\n")
	after, err := strconv.ParseInt(resp.Header.Get("Retry-After"), 10, 64)
	if err != nil || after <= 0 || !strings.Contains(body, `"retry_after":`+resp.Header.Get("Retry-After")+",") {
		t.Errorf("Retry-After %q, %v: %s", resp.Header.Get("Retry-After"), err, body)
	}
}

// faraway has no window that anybody will live to see.
type faraway struct{}

func (faraway) Take(int64, []byte) (time.Duration, bool) { return math.MaxInt64, false }
func (faraway) Full(int64, []byte) (time.Duration, bool) { return math.MaxInt64, true }
