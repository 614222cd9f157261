package proxy

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
)

// receive reads the responses in the order of their requests. ended reports that the server has ended the connection as
// it said.
func (v *mixupVisit) receive(in *bufio.Reader) (answered int, ended bool, err error) {
	for i, q := range v.requests {
		ended, err := q.receive(in, &v.m.figures)
		switch {
		case err != nil && v.mode == resetAt && (isEnd(err) || endsHere(in)):
			return i, true, nil
		case err != nil:
			return i, false, fmt.Errorf("response %d of %d, to %s %s in form %v: %w",
				i+1, len(v.requests), q.kind, q.id, q.shape, err)
		case ended:
			if n := in.Buffered(); n > 0 {
				rest, _ := in.Peek(n)
				return i + 1, true, fmt.Errorf("behind the last response: %.300q", rest)
			}
			return i + 1, true, nil
		}
		if v.next != nil {
			v.next <- struct{}{}
		}
	}
	if n := in.Buffered(); n > 0 {
		rest, _ := in.Peek(n)
		return len(v.requests), false, fmt.Errorf("behind the last response: %.300q", rest)
	}
	return len(v.requests), false, nil
}

// isEnd reports an error of a connection that has ended.
func isEnd(err error) bool {
	var broken *net.OpError
	return errors.As(err, &broken) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)
}

// endsHere reports that nothing follows: the line that was read last is what a reset has left of a longer one.
func endsHere(in *bufio.Reader) bool {
	_, err := in.Peek(1)
	return isEnd(err)
}

// receive reads the response to q.
func (q *mixupRequest) receive(in *bufio.Reader, f *mixupFigures) (ended bool, err error) {
	resp, err := http.ReadResponse(in, &http.Request{Method: q.method})
	for err == nil && resp.StatusCode < 200 && resp.StatusCode != 101 {
		if resp.StatusCode == 103 && (q.shape == nil || q.shape.name != "interim") {
			return false, errors.New("the interim response is another's")
		}
		resp, err = http.ReadResponse(in, &http.Request{Method: q.method})
	}
	if err != nil {
		if q.shape != nil && q.shape.broken && (errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)) {
			f.cut.Add(1) // before the first byte of its body
			return true, nil
		}
		return false, fmt.Errorf("it is missing: %w", err)
	}
	body, cut := io.ReadAll(resp.Body)
	if ids := resp.Header["X-Request-Id"]; len(ids) != 1 || ids[0] != q.id && !q.malformed {
		return false, fmt.Errorf("it is another's: %d %v %.200q", resp.StatusCode, resp.Header, body)
	}
	ids := resp.Header["X-Id"]
	switch {
	case len(ids) == 0:
		return resp.Close, q.checkLocal(resp, body, cut, f)
	case len(ids) > 1 || ids[0] != q.id || q.shape == nil:
		return false, fmt.Errorf("it is another's: %d %v %.200q", resp.StatusCode, resp.Header, body)
	}
	return q.checkForwarded(resp, body, cut, f)
}

// checkForwarded checks an answer of the upstream.
func (q *mixupRequest) checkForwarded(resp *http.Response, body []byte, cut error, f *mixupFigures) (
	ended bool, err error) {
	whole := mixupBody(q.id, q.size)
	if q.method == "HEAD" || q.shape.empty {
		whole = ""
	}
	switch {
	case resp.StatusCode != q.shape.status:
		return false, fmt.Errorf("its status is %d, want %d", resp.StatusCode, q.shape.status)
	case string(body) == whole && cut == nil:
		f.upstream.Add(1)
		return resp.Close, nil
	case q.shape.broken && (cut != nil || q.old && resp.Close) && strings.HasPrefix(whole, string(body)):
		f.cut.Add(1)
		return true, nil
	}
	return false, fmt.Errorf("its body has %d bytes, want %d: %.200q, %w", len(body), len(whole), body, cut)
}

// checkLocal checks an answer of the proxy.
func (q *mixupRequest) checkLocal(resp *http.Response, body []byte, cut error, f *mixupFigures) error {
	status := resp.StatusCode
	switch {
	case cut != nil:
		return fmt.Errorf("it is cut: %w", cut)
	case q.method != "HEAD" && !q.malformed && !strings.Contains(string(body), `"request_id":"`+q.id+`"`):
		return fmt.Errorf("it is another's: %d %.300q", status, body)
	case q.half && resp.Close && resp.Header.Get("X-Sluice-Reason") == "client_gone":
	case q.shape == nil && status != q.status, q.malformed && !resp.Close:
		return fmt.Errorf("its status is %d, want %d: %.300q", status, q.status, body)
	case q.shape != nil && status != 502 && status != 503:
		return fmt.Errorf("its status is %d: %.300q", status, body)
	case q.shape != nil && !q.shape.broken: // the upstream had just closed the connection that it came on
		f.faults.Add(1)
	}
	f.local.Add(1)
	if status == 400 {
		f.malformed.Add(1)
	}
	return nil
}
