package e2e

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"testing"
	"time"
)

// orderText is an order of SKU 1001 as it goes over the wire.
const orderText = "POST /api/seckill/1001/order HTTP/1.1\r\nHost: shop\r\nCookie: uid=7\r\nContent-Length: 0\r\n\r\n"

// tally counts answers by "status reason".
type tally map[string]int

func (t tally) add(more tally) {
	for k, n := range more {
		t[k] += n
	}
}

// listener reads the answers that come on one connection.
type listener struct {
	in *bufio.Reader
}

// hear reads one whole answer, and says what it was.
func (l listener) hear() (kind string, closes bool, err error) {
	resp, err := http.ReadResponse(l.in, nil)
	if err != nil {
		return "", true, err
	}
	_, err = io.Copy(io.Discard, resp.Body)
	return fmt.Sprintf("%d %s", resp.StatusCode, resp.Header.Get("X-Sluice-Reason")), resp.Close, err
}

// dial connects to a gate until the test ends. All that is done with the connection must be over in good time.
func dial(t *testing.T, address string) net.Conn {
	t.Helper()
	c, err := net.DialTimeout("tcp", address, long)
	if err == nil {
		err = c.SetDeadline(time.Now().Add(2 * long))
	}
	if err != nil {
		t.Error(err)
		return nil
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// rush sends total orders over so many connections, some at a time on each, as fast as the gate answers them.
func rush(t *testing.T, address string, connections, total int) tally {
	t.Helper()
	var mu sync.Mutex
	sum := tally{}
	var all sync.WaitGroup
	for i := range connections {
		share := total / connections
		if i < total%connections {
			share++
		}
		all.Go(func() {
			got := push(t, address, share)
			mu.Lock()
			defer mu.Unlock()
			sum.add(got)
		})
	}
	all.Wait()
	return sum
}

// push sends total orders over one connection, 16 before the answers to them.
func push(t *testing.T, address string, total int) tally {
	got := tally{}
	c := dial(t, address)
	if c == nil {
		return got
	}
	defer c.Close()
	l := listener{bufio.NewReader(c)}
	for done := 0; done < total; {
		batch := min(16, total-done)
		if err := c.SetDeadline(time.Now().Add(long)); err != nil {
			t.Error(err)
			return got
		}
		if _, err := c.Write(repeated(batch)); err != nil {
			t.Errorf("send orders: %v", err)
			return got
		}
		for range batch {
			kind, _, err := l.hear()
			if err != nil {
				t.Errorf("read answer: %v", err)
				return got
			}
			got[kind]++
			done++
		}
	}
	return got
}

func repeated(n int) (b []byte) {
	for range n {
		b = append(b, orderText...)
	}
	return b
}
