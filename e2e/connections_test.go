package e2e

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"testing"
)

// stays sends a request and reads its answer: 200 on a connection that stays open, else a whole rejection and the end.
func stays(t *testing.T, c net.Conn) bool {
	t.Helper()
	if _, err := io.WriteString(c, "GET /page HTTP/1.1\r\nHost: shop\r\n\r\n"); err != nil {
		t.Errorf("send: %v", err)
	}
	in := bufio.NewReader(c)
	resp, err := http.ReadResponse(in, nil)
	if err != nil {
		t.Fatalf("read answer: %v", err)
	}
	body, err := io.ReadAll(resp.Body)
	if err != nil || resp.ContentLength != int64(len(body)) || len(body) == 0 {
		t.Errorf("%d bytes of a body of %d: %v", len(body), resp.ContentLength, err)
	}
	if resp.StatusCode == http.StatusOK && !resp.Close {
		return true
	}
	if reason := resp.Header.Get("X-Sluice-Reason"); resp.StatusCode != http.StatusTooManyRequests ||
		reason != "ip_conns" || !resp.Close {
		t.Errorf("rejected with %d %q, close %v", resp.StatusCode, reason, resp.Close)
	}
	if n, err := in.Read(make([]byte, 1)); n != 0 || err != io.EOF {
		t.Errorf("after the rejection came %d bytes and %v, want the end", n, err)
	}
	return false
}
