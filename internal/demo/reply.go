package demo

import (
	"context"
	"encoding/json"
	"strconv"
	"time"

	"github.com/valyala/fasthttp"
)

// kind says who answered, or why there was no answer. Each press has exactly one.
type kind uint8

const (
	admitted   kind = iota // the shop answered
	rejected               // the gate answered in the shop's place
	unknown                // the gate answered that it does not know what became of the order
	broken                 // no connection, or one that broke before a whole answer
	unanswered             // the shopper's time was up first
)

// reply is what one press came to.
type reply struct {
	kind   kind
	reason string // the gate's word, when it answered
	status int
	code   int           // the shop's own, when it answered with 409
	wait   time.Duration // Retry-After; 0 = none
}

// reasonHeader is how the gate signs its own answers.
const reasonHeader = "X-Sluice-Reason"

// longestWait bounds what a shopper takes Retry-After for: a shopper does not wait longer on a sale.
const longestWait = time.Minute

// understand reads an answer.
func understand(resp *fasthttp.Response) reply {
	a := reply{status: resp.StatusCode(), wait: retryAfter(resp.Header.Peek(fasthttp.HeaderRetryAfter))}
	if word := resp.Header.Peek(reasonHeader); len(word) > 0 {
		a.kind, a.reason = rejected, readable(word)
		if a.status == fasthttp.StatusBadGateway || a.status == fasthttp.StatusGatewayTimeout {
			a.kind = unknown
		}
	} else if a.status == fasthttp.StatusConflict {
		a.code = codeOf(resp.Body())
	}
	return a
}

// codeOf reads the shop's code out of its answer; -1 if there is none.
func codeOf(body []byte) int {
	said := struct{ Code int }{-1}
	if json.Unmarshal(body, &said) != nil {
		return -1
	}
	return said.Code
}

// lost is the reply to a press without an answer.
func lost(ctx context.Context) reply {
	if ctx.Err() != nil {
		return reply{kind: unanswered}
	}
	return reply{kind: broken}
}

// retryAfter reads whole seconds (RFC 9110, section 10.2.3); a date or nonsense counts as nothing said.
func retryAfter(v []byte) time.Duration {
	seconds, err := strconv.ParseUint(string(v), 10, 16)
	if err != nil {
		return 0
	}
	return min(time.Duration(seconds)*time.Second, longestWait)
}

// readable keeps a reason that could be one; any other word has no place in a report.
func readable(word []byte) string {
	const most = 24
	if len(word) > most {
		return "other"
	}
	for _, c := range word {
		if (c < 'a' || c > 'z') && c != '_' {
			return "other"
		}
	}
	return string(word)
}

// settles tells whether the shopper goes home with this answer, and how. Who was told to come back, or heard nothing,
// presses again: after an unknown outcome that is safe as well, since it is the same order by its key, and the shop
// sells one to each person.
func (a reply) settles() (home ending, final bool) {
	switch {
	case a.kind == broken, a.kind == unknown, a.kind == unanswered, a.reason == "in_progress":
		return 0, false
	case a.kind == admitted && a.status >= fasthttp.StatusInternalServerError:
		return 0, false
	case a.status == fasthttp.StatusTooManyRequests, a.status == fasthttp.StatusServiceUnavailable, a.wait > 0:
		return 0, false
	case a.kind == admitted && a.status == fasthttp.StatusOK:
		return bought, true
	case a.reason == "sold_out", a.code == soldOut.code:
		return toldSoldOut, true
	case a.reason == "duplicate", a.reason == "confirmed", a.code == already.code:
		return hadOne, true
	}
	return turnedAway, true
}
