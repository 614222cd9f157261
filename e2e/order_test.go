package e2e

import (
	"bufio"
	"io"
	"net/http"
	"strings"
	"testing"
)

// answer is what a shopper gets.
type answer struct {
	status int
	reason string // X-Sluice-Reason: "" = from the shop
	body   string
	header http.Header
	closes bool // the connection ends with it
}

// order posts one order of a SKU by user 7; more are header lines.
func (g *running) order(sku string, more ...string) answer {
	g.t.Helper()
	return g.ask("POST", "/api/seckill/"+sku+"/order", append(more, "Cookie: uid=7")...)
}

// ask sends one request with header lines, and wants a whole answer.
func (g *running) ask(method, target string, lines ...string) answer {
	g.t.Helper()
	return g.request(method, g.front+target, "", lines)
}

// control asks the control API, as ask asks the front.
func (g *running) control(method, target, body string, lines ...string) answer {
	g.t.Helper()
	return g.request(method, g.admin+target, body, lines)
}

func (g *running) request(method, at, body string, lines []string) answer {
	g.t.Helper()
	r, err := http.NewRequest(method, "http://"+at, strings.NewReader(body))
	if err != nil {
		g.t.Fatal(err)
	}
	for _, l := range lines {
		name, value, _ := strings.Cut(l, ": ")
		r.Header.Add(name, value)
	}
	a, err := send(g.client, r)
	if err != nil {
		g.t.Errorf("%s %s: %v", method, at, err)
	}
	return a
}

// send sends a request, and reads the answer to its end.
func send(client *http.Client, r *http.Request) (a answer, err error) {
	resp, err := client.Do(r)
	if err != nil {
		return a, err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	return answer{resp.StatusCode, resp.Header.Get("X-Sluice-Reason"), string(b), resp.Header, resp.Close}, err
}

// raw sends a request as it stands on a connection of its own, and wants a whole answer.
func (g *running) raw(t *testing.T, text string) answer {
	t.Helper()
	c := dial(t, g.front)
	if _, err := io.WriteString(c, text); err != nil {
		t.Fatal(err)
	}
	resp, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		t.Fatalf("read answer: %v", err)
	}
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Errorf("read body of answer: %v", err)
	}
	return answer{resp.StatusCode, resp.Header.Get("X-Sluice-Reason"), string(b), resp.Header, resp.Close}
}

// is compares status and reason.
func (a answer) is(status int, reason string) bool { return a.status == status && a.reason == reason }

// must fails the test when the answer is another one.
func (a answer) must(t *testing.T, status int, reason string) {
	t.Helper()
	if !a.is(status, reason) {
		t.Errorf("answered %d %q, want %d %q: %s", a.status, a.reason, status, reason, a.body)
	}
}
