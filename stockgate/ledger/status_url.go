package ledger

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
)

// place is where a status URL takes the serial.
const place = "{serial}"

// StatusURL asks the shop for an order by HTTP: GET, where 200 means that it exists, 404 that it does not, and
// anything else, redirects too, that nobody knows. It is safe for concurrent use.
type StatusURL struct {
	before, after string
	transport     *http.Transport
}

// NewStatusURL returns an oracle for a URL that contains {serial}, "http://shop/orders/by-serial/{serial}".
func NewStatusURL(text string) (*StatusURL, error) {
	before, after, ok := strings.Cut(text, place)
	if !ok {
		return nil, fmt.Errorf("read status URL %q: it has no %s", text, place)
	}
	if strings.Contains(after, place) {
		return nil, fmt.Errorf("read status URL %q: it has %s twice", text, place)
	}
	u, err := url.Parse(before + "x" + after)
	if err != nil {
		return nil, fmt.Errorf("read status URL %q: %w", text, err)
	}
	host, _ := url.Parse(before)
	if u.Scheme != "http" && u.Scheme != "https" || host == nil || host.Host != u.Host || u.Host == "" {
		return nil, fmt.Errorf("read status URL %q: it must name a host by http or https, and %s behind it", text, place)
	}
	return &StatusURL{before: before, after: after, transport: &http.Transport{
		MaxConnsPerHost:        asksAtOnce,
		MaxIdleConnsPerHost:    asksAtOnce,
		IdleConnTimeout:        2 * askTimeout, // mostly below a shop's keep-alive; a GET may be repeated anyway
		MaxResponseHeaderBytes: 64 << 10,
		DisableCompression:     true,
	}}, nil
}

// of returns the URL of one order. The serial is escaped so that it is one segment of a path, or one value of a query.
func (s *StatusURL) of(serial string) string { return s.before + url.QueryEscape(serial) + s.after }

// Ask implements Oracle.
func (s *StatusURL) Ask(ctx context.Context, serial string) (Verdict, error) {
	if !ValidSerial([]byte(serial)) {
		return NobodyKnows, errors.New("ask for an order: no valid serial")
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.of(serial), nil)
	if err != nil {
		return NobodyKnows, fmt.Errorf("ask for order %q: %w", serial, err)
	}
	resp, err := s.transport.RoundTrip(req) // a client would follow redirects
	if err != nil {
		return NobodyKnows, fmt.Errorf("ask for order %q: %w", serial, err)
	}
	defer resp.Body.Close()
	if _, err := io.CopyN(io.Discard, resp.Body, 64<<10); err != nil && !errors.Is(err, io.EOF) {
		return NobodyKnows, fmt.Errorf("ask for order %q: %w", serial, err)
	}
	switch resp.StatusCode {
	case http.StatusOK:
		return OrderExists, nil
	case http.StatusNotFound:
		return NoOrder, nil
	}
	return NobodyKnows, nil
}

// Close drops the connections that are idle.
func (s *StatusURL) Close() { s.transport.CloseIdleConnections() }
