package demo

import (
	"encoding/json"
	"strings"

	"github.com/valyala/fasthttp"
)

// longestLink is the most bytes of a path that a shopper follows.
const longestLink = 512

// statusLink reads where the gate tells what became of an order, </path>; rel="status" (RFC 8288, RFC 8631); "" when it
// is anything but a path on the same host.
func statusLink(v []byte) string {
	path, ok := strings.CutSuffix(string(v), `>; rel="status"`)
	if !ok || !strings.HasPrefix(path, "</") || strings.HasPrefix(path, "<//") || len(path) > longestLink {
		return ""
	}
	path = path[1:]
	for _, c := range []byte(path) {
		if c <= ' ' || c > '~' || c == '<' || c == '>' {
			return ""
		}
	}
	return path
}

// understandState reads what the gate tells of an order, or why it does not.
func understandState(resp *fasthttp.Response) reply {
	if len(resp.Header.Peek(reasonHeader)) > 0 {
		return understand(resp)
	}
	var said struct{ State string }
	if json.Unmarshal(resp.Body(), &said) != nil || said.State == "" {
		said.State = "none"
	}
	return reply{kind: looked, status: resp.StatusCode(), state: said.State}
}

// lookedUp tells whether a shopper goes home with the state of the order.
func (a reply) lookedUp() (home ending, final bool) {
	switch a.state {
	case "confirmed":
		return hadOne, true
	case "released", "refunded":
		return turnedAway, true
	}
	return 0, false // held, or nobody knows it
}
