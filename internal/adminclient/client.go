// Package adminclient speaks the control API of a running gateway, or of the same API within this process over the
// Redis of a configuration: every rule and every message is the same. It does not print.
package adminclient

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/user"
	"strings"

	"sluice/config"
)

// Client speaks the control API.
type Client struct {
	Base, Token string
	HTTP        *http.Client
}

// ErrNoAnswer says that nothing listens at the address of a gateway.
var ErrNoAnswer = errors.New("no gateway answers")

// maxResponse bounds what is read of one answer, in bytes.
const maxResponse = 64 << 20

// Call asks for path, sends in unless it is nil, and reads the answer into out. header has names and values by turns.
func (c Client) Call(ctx context.Context, method, path string, in, out any, header ...string) error {
	var body io.Reader
	if in != nil {
		b, err := json.Marshal(in)
		if err != nil {
			return err
		}
		body = bytes.NewReader(b)
	}
	req, err := http.NewRequestWithContext(ctx, method, c.Base+"/api/v1"+path, body)
	if err != nil {
		return err
	}
	for i := 0; i+1 < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	req.Header.Set("Sluice-Operator", whoAmI())
	if c.Token != "" {
		req.Header.Set("Authorization", "Bearer "+c.Token)
	}
	resp, err := c.HTTP.Do(req)
	if err != nil {
		var dial *net.OpError
		if errors.As(err, &dial) && dial.Op == "dial" {
			return fmt.Errorf("%w at %s: %w; start it, or name it with --admin or --config", ErrNoAnswer, c.Base, dial)
		}
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return c.problem(resp)
	}
	if err := json.NewDecoder(io.LimitReader(resp.Body, maxResponse)).Decode(out); err != nil {
		return fmt.Errorf("read the answer of %s: %w; is this the admin address of a gateway?", c.Base, err)
	}
	return nil
}

// Segment is name as one segment of a path. Dots are escaped too where they would mean another place.
func Segment(name string) string {
	if name == "." || name == ".." {
		return strings.ReplaceAll(name, ".", "%2E")
	}
	return url.PathEscape(name)
}

// whoAmI names the person at this terminal, for the gate's audit.
func whoAmI() string {
	host, _ := os.Hostname() // half a name is better than none
	name := "unknown"
	if u, err := user.Current(); err == nil {
		name = u.Username
	}
	return name + "@" + host
}

// noRedirect is an answer from elsewhere as it is: following it would ask another server, and believe what that says.
func noRedirect(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

// problem is the error that resp tells of. What the API answers about the request itself needs no status.
func (c Client) problem(resp *http.Response) error {
	var told struct {
		Detail   string
		Problems []config.Problem
	}
	if json.NewDecoder(io.LimitReader(resp.Body, 1<<20)).Decode(&told) != nil || told.Detail == "" {
		return fmt.Errorf("%s: is this the admin address of a gateway?", resp.Status)
	}
	if len(told.Problems) > 0 {
		return fmt.Errorf("%s\n%w", told.Detail, &config.Error{Problems: told.Problems})
	}
	switch resp.StatusCode {
	case http.StatusNotFound:
		return notFound(told.Detail)
	case http.StatusForbidden, http.StatusTooManyRequests, http.StatusBadRequest, http.StatusConflict,
		http.StatusBadGateway:
		return errors.New(told.Detail)
	case http.StatusUnauthorized:
		if c.Token != "" {
			return fmt.Errorf("%s: the gateway has another token, or read its token_file before that changed: name "+
				"the other with --token-file, or have the gateway read its files again: kill -HUP PID", resp.Status)
		}
		return fmt.Errorf("%s: the gateway wants its token; name it with --token-file", resp.Status)
	}
	return fmt.Errorf("%s: %s", resp.Status, told.Detail)
}

// ErrNotFound is the cause when the API has no such thing.
var ErrNotFound = errors.New("not found")

// notFound is an ErrNotFound in the API's own words.
type notFound string

func (n notFound) Error() string      { return string(n) }
func (notFound) Is(target error) bool { return target == ErrNotFound }

// inProcess returns a client of a control API that h serves in this process, as to a client on this machine.
func inProcess(h http.Handler) Client {
	return Client{Base: "http://localhost", HTTP: &http.Client{Transport: handlerTransport{h}, CheckRedirect: noRedirect}}
}

// handlerTransport is a transport that answers requests by a handler of this process.
type handlerTransport struct{ handler http.Handler }

// RoundTrip implements http.RoundTripper.
func (i handlerTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	asked := r.Clone(r.Context())
	asked.RemoteAddr = "127.0.0.1:0"
	if asked.Body == nil {
		asked.Body = http.NoBody
	}
	defer asked.Body.Close()
	w := &written{header: make(http.Header), status: http.StatusOK}
	i.handler.ServeHTTP(w, asked)
	return &http.Response{
		Status: fmt.Sprintf("%d %s", w.status, http.StatusText(w.status)), StatusCode: w.status,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: w.header, Body: io.NopCloser(&w.body), ContentLength: int64(w.body.Len()), Request: r,
	}, nil
}

// written is an answer that is kept.
type written struct {
	header http.Header
	status int
	body   bytes.Buffer
}

func (w *written) Header() http.Header         { return w.header }
func (w *written) WriteHeader(status int)      { w.status = status }
func (w *written) Write(b []byte) (int, error) { return w.body.Write(b) }
