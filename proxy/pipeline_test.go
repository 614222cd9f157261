package proxy

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/valyala/fasthttp"
)

// A head that came along with the request before it has its own time for the rest, and its own 100.
func TestPipelinedBodyIsAskedForToo(t *testing.T) {
	addr, _ := gate(t, options(&seen{}))
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	br := bufio.NewReader(c)
	io.WriteString(c, strings.Replace(order, "Content-Length: 2\r\n\r\nhi", "Transfer-Encoding: chunked\r\n\r\n", 1))
	second := "POST /api/seckill/1001/order HTTP/1.1\r\nHost: s\r\nCookie: uid=7\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n"
	time.Sleep(parkAfter) // its body comes in pieces
	io.WriteString(c, "2\r\nhi\r\n0\r\n\r\n"+second)
	if resp, err := http.ReadResponse(br, nil); err != nil || resp.StatusCode != 200 {
		t.Fatalf("first: %v, %v", resp, err)
	} else if _, err := io.ReadAll(resp.Body); err != nil {
		t.Fatal(err)
	}
	if err := c.SetReadDeadline(time.Now().Add(5 * time.Second)); err != nil {
		t.Fatal(err)
	}
	if line, err := br.ReadString('\n'); line != "HTTP/1.1 100 Continue\r\n" {
		t.Errorf("second: %q, %v", line, err)
	}
}

func TestTimeOfTheShopIsNotTheNextRequests(t *testing.T) {
	const patience = 300 * time.Millisecond
	slow := true
	shop := shopFunc(func(*Outgoing, *fasthttp.Response) Outcome {
		if slow {
			time.Sleep(2 * patience)
		}
		slow = false
		return Answered
	})
	addr := serve(t, newProxy(t, options(shop)), ServerOptions{ReadHeaderTimeout: patience, ReadTimeout: patience, IdleTimeout: time.Minute})
	for name, cutAt := range map[string]int{"head": 20, "body": len(order) - 1} {
		slow = true
		c, err := net.Dial("tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		fmt.Fprint(c, order[:1])
		time.Sleep(2 * parkAfter) // parked: what follows has the time of a head that comes in pieces
		fmt.Fprint(c, order[1:]+order[:cutAt])
		br := bufio.NewReader(c)
		for i := range 2 {
			resp, err := http.ReadResponse(br, nil)
			if err != nil || resp.StatusCode != 200 {
				t.Fatalf("%s, %d: %v, %v", name, i, resp, err)
			}
			io.Copy(io.Discard, resp.Body)
			fmt.Fprint(c, order[cutAt:])
		}
	}
}
