package tracing

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
)

// sender sends messages to the collector. It is used by one goroutine.
type sender struct {
	url    string
	header http.Header
	client *http.Client
	body   bytes.Buffer
	zip    *gzip.Writer
}

// newSender reads OpenTelemetry's environment variables: header fields for the collector, and the certificate of its
// authority.
func newSender(address string, environment func(string) string) (*sender, error) {
	header := http.Header{"Content-Type": {"application/json"}, "Content-Encoding": {"gzip"}}
	s := &sender{url: address, header: header, zip: gzip.NewWriter(io.Discard)}
	transport := &http.Transport{Proxy: http.ProxyFromEnvironment, MaxIdleConns: 1}
	noRedirects := func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	s.client = &http.Client{Transport: transport, CheckRedirect: noRedirects}
	for _, name := range []string{"OTEL_EXPORTER_OTLP_HEADERS", "OTEL_EXPORTER_OTLP_TRACES_HEADERS"} {
		if err := s.addFields(name, environment(name)); err != nil {
			return nil, err
		}
	}
	for _, name := range []string{"OTEL_EXPORTER_OTLP_TRACES_CERTIFICATE", "OTEL_EXPORTER_OTLP_CERTIFICATE"} {
		path := environment(name)
		if path == "" {
			continue
		}
		pem, err := os.ReadFile(path)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		pool := x509.NewCertPool()
		if !pool.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("%s: no certificate is in %s", name, path)
		}
		transport.TLSClientConfig = &tls.Config{RootCAs: pool}
		break
	}
	return s, nil
}

// addFields reads "name=value,name=value", escaped as in a URL (opentelemetry.io/docs/specs/otel/protocol/exporter).
func (s *sender) addFields(name, list string) error {
	for pair := range strings.SplitSeq(list, ",") {
		if pair = strings.TrimSpace(pair); pair == "" {
			continue
		}
		key, escaped, ok := strings.Cut(pair, "=")
		v, err := url.PathUnescape(strings.TrimSpace(escaped))
		if key = strings.TrimSpace(key); !ok || key == "" || err != nil {
			return fmt.Errorf("%s: want name=value,name=value", name) // without the value, which may be a secret
		}
		s.header.Set(key, v)
	}
	return nil
}

// send makes one attempt.
func (s *sender) send(ctx context.Context, m message) error {
	s.body.Reset()
	s.zip.Reset(&s.body)
	if err := errors.Join(json.NewEncoder(s.zip).Encode(m), s.zip.Close()); err != nil {
		return fmt.Errorf("write traces: %w", err)
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, s.url, bytes.NewReader(s.body.Bytes()))
	if err != nil {
		return fmt.Errorf("send traces: %w", err)
	}
	r.Header = s.header
	resp, err := s.client.Do(r)
	if err != nil {
		return fmt.Errorf("send traces: %w", err)
	}
	defer resp.Body.Close()
	body, _ := io.ReadAll(io.LimitReader(resp.Body, 4096))
	if resp.StatusCode < 200 || resp.StatusCode > 299 {
		return fmt.Errorf("send traces: the collector says %s: %.200q", resp.Status, body)
	}
	return nil
}
