package proxy

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/valyala/fasthttp"
)

// converse sends raw on a connection of its own, and returns all that comes until the gate ends it.
func converse(t *testing.T, addr, raw string) string {
	t.Helper()
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	send(t, c, raw)
	all, err := io.ReadAll(c)
	if err != nil {
		t.Fatal(err)
	}
	return string(all)
}

// "close" among other options, in any letter case and on any line, ends the connection, and the answer says so.
func TestWhoAsksToCloseIsToldThatItIsDone(t *testing.T) {
	shop := &seen{}
	addr, _ := gate(t, options(shop))
	for i, fields := range []string{
		"Connection: close\r\n", "connection: CLOSE\r\n", "Connection: keep-alive, close\r\n", "Connection: Close, X-A\r\n", "Connection: close\r\nConnection: keep-alive\r\n",
	} {
		all := converse(t, addr, "GET / HTTP/1.1\r\nHost: s\r\n"+fields+"\r\nGET /next HTTP/1.1\r\nHost: s\r\n\r\n")
		if strings.Count(all, "HTTP/1.1 200 OK\r\n") != 1 || !strings.Contains(all, "\r\nConnection: close\r\n") || len(shop.all()) != i+1 {
			t.Errorf("%q: %q", fields, all)
		}
	}
}

func TestHTTP10StaysWhereItAsksTo(t *testing.T) {
	addr, _ := gate(t, options(&seen{}))
	const stays, ends = "GET / HTTP/1.0\r\nHost: s\r\nConnection: X-A, Keep-Alive\r\n\r\n", "GET / HTTP/1.0\r\nHost: s\r\nConnection: X-A\r\n\r\n"
	all := converse(t, addr, stays+stays+ends+stays)
	if strings.Count(all, "\r\nConnection: keep-alive\r\n") != 2 || strings.Count(all, "\r\nConnection: close\r\n") != 1 || strings.Count(all, "200 OK") != 3 {
		t.Errorf("%q", all)
	}
}

// Of what stands twice, and is looked up by its name, the first is meant, as proxies in front of the gate set it.
func TestFirstOfTwoFieldsIsTheOneThatIsLookedUp(t *testing.T) {
	shop := &seen{}
	o := options(shop)
	o.Trusted = prefixes("127.0.0.0/8")
	addr, _ := gate(t, o)
	resp, _ := talk(t, addr, "GET / HTTP/1.1\r\nHost: s\r\nx-request-ID: first\r\nX-Request-Id: second\r\nx-forwarded-proto: https\r\nX-Forwarded-Proto: http\r\n"+
		"X-Forwarded-Host: a\r\nX-Forwarded-Host: b\r\n\r\n")
	saw := strings.Join(shop.all(), "")
	for _, line := range []string{"X-Request-Id: first\r\n", "X-Forwarded-Proto: https\r\n", "X-Forwarded-Host: a\r\n"} {
		name, _, _ := strings.Cut(line, ":")
		if strings.Count(saw, name) != 1 || !strings.Contains(saw, line) {
			t.Errorf("shop saw %q, want one %q", saw, line)
		}
	}
	if id := resp.Header.Get("X-Request-Id"); id != "first" {
		t.Errorf("request id %q", id)
	}
}

func TestRefusedHeadIsAnsweredOnceAndNothingBehindItIsRead(t *testing.T) {
	shop := &seen{}
	p := newProxy(t, options(shop))
	s, addr := serveWith(t, p, ServerOptions{})
	all := converse(t, addr, order+"GET / HTTP/1.1\r\nHost: s\r\nHost: s\r\n\r\n"+order)
	if strings.Count(all, "HTTP/1.1 200 ") != 1 || strings.Count(all, "HTTP/1.1 400 ") != 1 || strings.Count(all, "HTTP/1.1 ") != 2 || !strings.Contains(all, "malformed") {
		t.Errorf("%q", all)
	}
	if n := s.malformed[kindNamed("host_twice")].Load(); n != 1 || len(shop.all()) != 1 {
		t.Errorf("counted %d times; the shop saw %q", n, shop.all())
	}
}

// A head stays as it is until its answer has ended, however many others come meanwhile, large ones too.
func TestHeadsDoNotRunIntoEachOther(t *testing.T) {
	o := options(shopFunc(func(out *Outgoing, resp *fasthttp.Response) Outcome {
		body := io.Reader(strings.NewReader(string(out.Body)))
		if out.BodyStream != nil {
			body = out.BodyStream
		}
		all, err := io.ReadAll(body)
		if err != nil {
			return Broken
		}
		resp.SetBodyStream(strings.NewReader(string(out.Line)+string(out.Fields)+string(all)), -1)
		return Answered
	}))
	addr, _ := gate(t, o)
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			c, err := net.Dial("tcp", addr)
			if err != nil {
				t.Error(err)
				return
			}
			defer c.Close()
			in := bufio.NewReader(c)
			for j := range 40 {
				mark := fmt.Sprintf("%d-%d-", i, j)
				field := "A: " + strings.Repeat(mark, 1+(i*j)%13*200) + "\r\n"
				body := strings.Repeat("b"+mark, 1+j*200)
				raw := fmt.Sprintf("POST /%s HTTP/1.1\r\nHost: s\r\n%sX-Request-Id: %s\r\nContent-Length: %d\r\n\r\n%s", mark, field, mark, len(body), body)
				if _, err := io.WriteString(c, raw[:len(raw)/2]); err != nil {
					t.Error(err)
					return
				}
				if _, err := io.WriteString(c, raw[len(raw)/2:]); err != nil {
					t.Error(err)
					return
				}
				resp, err := http.ReadResponse(in, nil)
				if err != nil {
					t.Error(err)
					return
				}
				answer, err := io.ReadAll(resp.Body)
				text := string(answer)
				if err != nil || resp.Header.Get("X-Request-Id") != mark || !strings.HasPrefix(text, "POST /"+mark+" HTTP/1.1\r\n") || !strings.Contains(text, field) || !strings.HasSuffix(text, "\r\n"+body) {
					t.Errorf("%s: %d, %v, %.200q", mark, resp.StatusCode, err, text)
				}
			}
		})
	}
	all.Wait()
}
