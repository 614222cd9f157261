package settler

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"time"
)

const (
	maxResponse     = 4 << 10
	maxRetryAfter   = time.Hour
	signatureHeader = "Sluice-Webhook-Signature"
)

// poster sends signed JSON to one URL. It is safe for concurrent use.
type poster struct {
	url    string
	key    []byte
	client *http.Client
}

// newPoster returns a poster whose requests, with their responses, take at most timeout.
func newPoster(url string, key []byte, timeout time.Duration) *poster {
	return &poster{url: url, key: key, client: &http.Client{
		Timeout:       timeout,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		Transport: &http.Transport{
			MaxResponseHeaderBytes: 64 << 10, MaxIdleConnsPerHost: 64, IdleConnTimeout: time.Minute,
			TLSHandshakeTimeout: timeout,
		},
	}}
}

// Post sends one request. Every response but a 2xx is an error; after is what its Retry-After says. class is 2xx, 3xx,
// 4xx or 5xx, or error where there was no response.
func (p *poster) Post(ctx context.Context, text []byte) (class string, after time.Duration, err error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, p.url, bytes.NewReader(text))
	if err != nil {
		return "error", 0, err
	}
	now := time.Now()
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("User-Agent", "sluice")
	r.Header.Set(signatureHeader, signature(p.key, text, now))
	response, err := p.client.Do(r)
	if err != nil {
		return "error", 0, err
	}
	defer response.Body.Close()
	_, _ = io.CopyN(io.Discard, response.Body, maxResponse) // what it says changes nothing; the connection is kept
	class = strconv.Itoa(response.StatusCode/100) + "xx"
	if response.StatusCode/100 == 2 {
		return class, 0, nil
	}
	return class, retryAfter(response.Header.Get("Retry-After"), now), fmt.Errorf("it responds %s", response.Status)
}

// retryAfter reads seconds or a date: RFC 9110, section 10.2.3.
func retryAfter(text string, now time.Time) time.Duration {
	if seconds, err := strconv.ParseInt(text, 10, 64); err == nil {
		return time.Duration(min(max(seconds, 0), int64(maxRetryAfter/time.Second))) * time.Second
	}
	at, err := http.ParseTime(text)
	if err != nil {
		return 0
	}
	return min(max(at.Sub(now), 0), maxRetryAfter)
}
