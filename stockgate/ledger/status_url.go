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

// Where a status URL takes the serial, and the SKU.
const (
	serialHolder = "{serial}"
	skuHolder    = "{sku}"
)

// StatusURL asks the upstream for an order by HTTP: GET, where 200 means that it exists, 404 that it does not, and
// anything else, redirects too, that it is not known. It is safe for concurrent use.
type StatusURL struct {
	text      string
	transport *http.Transport
}

// NewStatusURL returns a source for a URL that contains {serial}, and perhaps {sku}:
// "http://shop/orders/{sku}/{serial}". Without {sku} a serial must be one order's, whichever SKU that is of.
func NewStatusURL(text string) (*StatusURL, error) {
	before, _, ok := strings.Cut(text, serialHolder)
	if !ok {
		return nil, fmt.Errorf("read status URL %q: it has no %s", text, serialHolder)
	}
	for _, p := range []string{serialHolder, skuHolder} {
		if strings.Count(text, p) > 1 {
			return nil, fmt.Errorf("read status URL %q: it has %s twice", text, p)
		}
	}
	u, err := url.Parse(fillIn(text, "x", "x"))
	if err != nil {
		return nil, fmt.Errorf("read status URL %q: %w", text, err)
	}
	before, _, _ = strings.Cut(before, skuHolder)
	host, _ := url.Parse(before)
	if u.Scheme != "http" && u.Scheme != "https" || host == nil || host.Host != u.Host || u.Host == "" {
		return nil, fmt.Errorf("read status URL %q: it must name a host by http or https, and %s behind it", text,
			serialHolder)
	}
	return &StatusURL{text: text, transport: &http.Transport{
		MaxConnsPerHost:        maxConcurrent,
		MaxIdleConnsPerHost:    maxConcurrent,
		IdleConnTimeout:        2 * askTimeout, // mostly below a shop's keep-alive; a GET may be repeated anyway
		MaxResponseHeaderBytes: 64 << 10,
		DisableCompression:     true,
	}}, nil
}

// fillIn is text with a serial and a SKU in their places.
func fillIn(text, serial, sku string) string {
	return strings.NewReplacer(serialHolder, serial, skuHolder, sku).Replace(text)
}

// urlOf returns the URL of one order. Both are escaped so that each is one segment of a path, or one value of a query.
func (s *StatusURL) urlOf(sku, serial string) string {
	return fillIn(s.text, url.QueryEscape(serial), url.QueryEscape(sku))
}

// Ask is an AskOrder.
func (s *StatusURL) Ask(ctx context.Context, sku, serial string) (OrderStatus, error) {
	if !ValidSerial([]byte(serial)) {
		return OrderUnknown, errors.New("ask for an order: no valid serial")
	}
	if (sku == "." || sku == "..") && strings.Contains(s.text, skuHolder) {
		return OrderUnknown, fmt.Errorf("ask for order %q: the SKU %q would name another place", serial, sku)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.urlOf(sku, serial), nil)
	if err != nil {
		return OrderUnknown, fmt.Errorf("ask for order %q: %w", serial, err)
	}
	resp, err := s.transport.RoundTrip(req) // a client would follow redirects
	if err != nil {
		return OrderUnknown, fmt.Errorf("ask for order %q: %w", serial, err)
	}
	defer resp.Body.Close()
	if _, err := io.CopyN(io.Discard, resp.Body, 64<<10); err != nil && !errors.Is(err, io.EOF) {
		return OrderUnknown, fmt.Errorf("ask for order %q: %w", serial, err)
	}
	switch resp.StatusCode {
	case http.StatusOK:
		return OrderExists, nil
	case http.StatusNotFound:
		return OrderNotFound, nil
	}
	return OrderUnknown, nil
}

// Close drops the connections that are idle.
func (s *StatusURL) Close() { s.transport.CloseIdleConnections() }
