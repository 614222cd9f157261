package main

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

// client speaks the control API.
type client struct {
	base, token string
	http        *http.Client
}

// longestAnswer bounds what is read of one answer, in bytes.
const longestAnswer = 64 << 20

// call asks for path, sends in unless it is nil, and reads the answer into out. header has names and values by turns.
func (c client) call(ctx context.Context, method, path string, in, out any, header ...string) error {
	var body io.Reader
	if in != nil {
		b, err := json.Marshal(in)
		if err != nil {
			return err
		}
		body = bytes.NewReader(b)
	}
	req, err := http.NewRequestWithContext(ctx, method, c.base+"/api/v1"+path, body)
	if err != nil {
		return err
	}
	for i := 0; i+1 < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	req.Header.Set("Sluice-Operator", whoAmI())
	if c.token != "" {
		req.Header.Set("Authorization", "Bearer "+c.token)
	}
	resp, err := c.http.Do(req)
	if err != nil {
		var dial *net.OpError
		if errors.As(err, &dial) && dial.Op == "dial" {
			return fmt.Errorf("no gate answers at %s: %w", c.base, dial)
		}
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return c.problem(resp)
	}
	if err := json.NewDecoder(io.LimitReader(resp.Body, longestAnswer)).Decode(out); err != nil {
		return fmt.Errorf("read the answer of %s: %w; is this the admin address of a gate?", c.base, err)
	}
	return nil
}

// segment is name as one segment of a path. Dots are escaped too where they would mean another place.
func segment(name string) string {
	if name == "." || name == ".." {
		return strings.ReplaceAll(name, ".", "%2E")
	}
	return url.PathEscape(name)
}

// whoAmI names the person at this terminal, for the gate's audit.
func whoAmI() string {
	host, _ := os.Hostname() // half a name is better than none
	name := "somebody"
	if u, err := user.Current(); err == nil {
		name = u.Username
	}
	return name + "@" + host
}

// here is an answer from elsewhere as it is: whoever follows it asks something else, and believes what that says.
func here(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

// problem is the error that resp tells of. What the API answers about the request itself needs no status.
func (c client) problem(resp *http.Response) error {
	var told struct {
		Detail   string
		Problems []config.Problem
	}
	if json.NewDecoder(io.LimitReader(resp.Body, 1<<20)).Decode(&told) != nil || told.Detail == "" {
		return fmt.Errorf("%s: is this the admin address of a gate?", resp.Status)
	}
	if len(told.Problems) > 0 {
		return fmt.Errorf("%s\n%w", told.Detail, &config.Error{Problems: told.Problems})
	}
	switch resp.StatusCode {
	case http.StatusForbidden, http.StatusTooManyRequests, http.StatusBadRequest, http.StatusNotFound, http.StatusConflict, http.StatusBadGateway:
		return errors.New(told.Detail)
	case http.StatusUnauthorized:
		if c.token != "" {
			return fmt.Errorf("%s: the gate has another token than the one of --token-file", resp.Status)
		}
		return fmt.Errorf("%s: the gate wants its token; name it with --token-file", resp.Status)
	}
	return fmt.Errorf("%s: %s", resp.Status, told.Detail)
}

// inside answers requests by a handler of this process, as one from this machine.
type inside struct{ handler http.Handler }

func (i inside) RoundTrip(r *http.Request) (*http.Response, error) {
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
