package load

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/valyala/fasthttp"

	"sluice/proxy/reject"
)

// Ending is how a shopper went home.
type Ending uint8

// Endings of a shopper.
const (
	Bought   Ending = iota // with an order
	SoldOut                // told that there is nothing left
	HadOne                 // with the order of an earlier request, whose answer never came
	Rejected               // with another final answer
	Unsure                 // it is unknown what became of the order
	GaveUp                 // no tries or no time left
	numEndings
)

// answer is what one request came to.
type answer struct {
	status int
	reason string        // of the gateway; "" = the shop answered
	code   int           // of the shop, where it answered 409
	wait   time.Duration // Retry-After; 0 = none
	link   string        // where the gateway tells what became of the order
	state  string        // of an order that was looked up, or that the gateway has accepted; or in a waiting room

	phase, ticket, pass string // of a waiting room
	poll                time.Duration
	clock, claimFrom    int64 // Unix ms; claimFrom 0 = it has not called the shopper
}

// ReasonHeader is where the gateway gives its reasons.
const ReasonHeader = "X-Sluice-Reason"

// What the shop says with its 409.
const (
	codeSoldOut = 40901
	codeHadOne  = 40902
)

// maxWait bounds what a shopper takes Retry-After for.
const maxWait = time.Minute

func readAnswer(resp *fasthttp.Response) answer {
	a := answer{status: resp.StatusCode(), reason: readable(resp.Header.Peek(ReasonHeader))}
	if seconds, err := strconv.ParseUint(string(resp.Header.Peek(fasthttp.HeaderRetryAfter)), 10, 16); err == nil {
		a.wait = min(time.Duration(seconds)*time.Second, maxWait)
	}
	link, ok := strings.CutSuffix(string(resp.Header.Peek("Link")), `>; rel="status"`)
	if ok && strings.HasPrefix(link, "</") && !strings.ContainsAny(link, " \r\n") && len(link) < 1024 {
		a.link = link[1:]
	}
	if a.reason == "" && (a.status == 200 || a.status == 202 || a.status == 409) && len(resp.Body()) < 32<<10 {
		var said struct {
			Code                       int
			State, Phase, Ticket, Pass string
			Poll                       int64 `json:"poll_ms"`
			ServerTime                 int64 `json:"server_time_ms"`
			ClaimFrom                  int64 `json:"claim_from_ms"`
		}
		if json.Unmarshal(resp.Body(), &said) == nil {
			a.code, a.state, a.phase, a.ticket, a.pass = said.Code, said.State, said.Phase, said.Ticket, said.Pass
			a.clock, a.claimFrom = said.ServerTime, said.ClaimFrom
			a.poll = min(max(time.Duration(said.Poll)*time.Millisecond, 0), maxWait)
		}
	}
	return a
}

// readable keeps a reason that could be one; any other word has no place in a report.
func readable(word []byte) string {
	const maxLength = 24
	if len(word) > maxLength {
		return "other"
	}
	for _, c := range word {
		if (c < 'a' || c > 'z') && c != '_' {
			return "other"
		}
	}
	return string(word)
}

// is tells whether the gateway gave a reason with a property.
func (a answer) is(property func(reject.Reason) bool) bool {
	return slices.ContainsFunc(reject.Reasons(), func(r reject.Reason) bool {
		return r.String() == a.reason && property(r)
	})
}

// tellsNothing tells whether an order may exist.
func (a answer) tellsNothing() bool {
	if a.reason == "" {
		return a.status >= fasthttp.StatusInternalServerError
	}
	return a.is(func(r reject.Reason) bool {
		return r.OutcomeUnknown() || r == reject.InProgress || r == reject.Internal
	})
}

// accepted tells whether the gateway has the order wait, and is going to deliver it.
func (a answer) accepted() bool {
	return a.reason == "" && a.status == fasthttp.StatusAccepted && strings.HasPrefix(a.link, orderPath)
}

// hasNoOrder tells whether an order that was looked up has ended without one.
func (a answer) hasNoOrder() bool {
	switch a.state {
	case "released", "refunded", "expired", "cancelled":
		return true
	}
	return false
}

// orderPath is where the gateway tells of orders.
const orderPath = "/.sluice/orders/"

// asksToReturn tells whether the shopper was told to order again later.
func (a answer) asksToReturn() bool {
	if a.reason == "" {
		return a.status == fasthttp.StatusTooManyRequests || a.status == fasthttp.StatusServiceUnavailable || a.wait > 0
	}
	return a.is(func(r reject.Reason) bool { return r.Transient() || r == reject.NotStarted })
}

// ends tells whether a shopper goes home with it, and how.
func (a answer) ends() (how Ending, final bool) {
	switch {
	case a.tellsNothing(), a.asksToReturn():
		return 0, false
	case a.reason == "" && a.status >= 200 && a.status < 300:
		return Bought, true
	case a.reason == "sold_out", a.reason == "" && a.status == fasthttp.StatusConflict && a.code == codeSoldOut:
		return SoldOut, true
	case a.reason == "confirmed", a.reason == "duplicate", a.reason == "" && a.code == codeHadOne:
		return HadOne, true
	}
	return Rejected, true
}
