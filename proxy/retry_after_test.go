package proxy

import (
	"math"
	"strconv"
	"strings"
	"testing"
	"time"
)

// However small a rate is configured, Retry-After is a number of seconds that is not in the past.
func TestRetryAfter_IsNeverBelowZero(t *testing.T) {
	o := options(&recorder{})
	o.Responses.Jitter = time.Hour
	o.Windows = farWindow{}
	addr, _ := gateway(t, o)
	resp, body := talk(t, addr, strings.Replace(search, "Connection", "Accept: application/json\r\nConnection", 1))
	after, err := strconv.ParseInt(resp.Header.Get("Retry-After"), 10, 64)
	if err != nil || after <= 0 || !strings.Contains(body, `"retry_after":`+resp.Header.Get("Retry-After")+",") {
		t.Errorf("Retry-After %q, %v: %s", resp.Header.Get("Retry-After"), err, body)
	}
}

// farWindow has its next window after as long as a Duration can say.
type farWindow struct{}

func (farWindow) Acquire(int64, []byte) (time.Duration, bool) { return math.MaxInt64, false }
func (farWindow) Peek(int64, []byte) (time.Duration, bool)    { return math.MaxInt64, true }
