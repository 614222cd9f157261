package queue

import (
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/valyala/fasthttp"

	"sluice/proxy"
	"sluice/proxy/auth"
	"sluice/proxy/metrics"
	"sluice/stockgate/ledger"
	"sluice/upstream"
)

// result is what an attempt came to.
type result struct {
	kind   attemptKind
	move   ledger.Move // "" = nothing is decided: the lease ends, and then it is asked about
	time   int64       // of the move, Unix ms
	from   int64       // of MoveNotNow, Unix ms
	answer string
	why    string // of an order that is stuck
	ended  bool   // the upstream has answered: it does not work on this attempt any more
}

// attemptKind is what is counted of an attempt.
type attemptKind int

const (
	attemptConfirmed attemptKind = iota
	attemptReleased
	attemptAgain   // the upstream has rejected it for now
	attemptUnsent  // not one byte was written
	attemptUnknown // sent, and no response tells what came of it
	numAttemptKinds
)

func (k attemptKind) String() string {
	return [numAttemptKinds]string{"confirmed", "released", "again", "unsent", "unknown"}[k]
}

// sender makes one attempt to deliver an order, and reads what came of it: from the answer, or by asking afterwards.
type sender struct{ *shared }

// attempt sends an order once.
func (s *sender) attempt(sku string, o *ledger.Leased) result {
	m, err := proxy.DecodeQueuedRequest(o.Request)
	if err != nil {
		return result{kind: attemptUnsent, move: ledger.MoveLater, time: ledger.Never, why: "its request is lost"}
	}
	now := time.Now()
	if now.UnixMilli() >= o.Deadline { // this process was stopped meanwhile: another may ask about the order already
		return result{kind: attemptUnsent, move: ledger.MoveUnsent}
	}
	var req upstream.Request
	var resp fasthttp.Response
	req.Reset()
	s.build(&req, &m, sku, o)
	outcome := s.live().Send(&req, &resp)
	defer req.Reset()
	defer resp.Reset()
	now = time.Now()
	switch outcome {
	case upstream.NotSent, upstream.Busy:
		s.pace.unreachable(now)
		return result{kind: attemptUnsent, move: ledger.MoveUnsent}
	case upstream.Answered:
		s.pace.answered()
		r := s.judge(now, sku, o, &resp)
		r.ended = resp.StatusCode() != fasthttp.StatusBadGateway && resp.StatusCode() != fasthttp.StatusGatewayTimeout
		return r
	}
	return result{kind: attemptUnknown}
}

// build makes the request of one attempt.
func (s *sender) build(req *upstream.Request, m *proxy.QueuedRequest, sku string, o *ledger.Leased) {
	req.Order, req.Whole = true, true
	h := &req.HTTP.Header
	h.SetMethod(m.Method)
	h.SetRequestURI(m.Target)
	for _, f := range m.Fields {
		h.Add(f.Name, f.Value)
	}
	h.Add("Idempotency-Key", o.Serial)
	h.Add("Sluice-Sku", sku)
	h.Add("Sluice-Quantity", strconv.FormatInt(o.Quantity, 10))
	h.Add("Sluice-Deadline", strconv.FormatInt(o.Deadline, 10))
	h.Add("Sluice-Attempt", strconv.FormatInt(o.Attempt, 10))
	if s.live().Signer != nil {
		h.Add("Sluice-Signature", string(s.live().Signer.Append(nil, auth.SignedOrder{Method: []byte(m.Method),
			Target: []byte(m.Target), Serial: o.Serial, SKU: []byte(sku), Quantity: o.Quantity, Deadline: o.Deadline})))
	}
	if m.HasBody {
		h.Add("Content-Length", strconv.Itoa(len(m.Body)))
	}
	req.HTTP.SetBodyRaw([]byte(m.Body))
}

// judge reads the upstream's answer. One that rejects the order for now, or since it came after the attempt's deadline,
// lets it wait again: the upstream has said that this attempt made none.
func (s *sender) judge(now time.Time, sku string, o *ledger.Leased, resp *fasthttp.Response) result {
	status := resp.StatusCode()
	busy := true
	switch status {
	case fasthttp.StatusServiceUnavailable:
		s.pace.unavailable(now, retryAfter(now, resp))
	case fasthttp.StatusTooManyRequests:
		s.pace.tooMany(now, retryAfter(now, resp))
	default:
		busy = false
		s.pace.taken()
	}
	word := string(resp.Header.Peek(proxy.OrderHeader))
	stated := word != ""
	switch outcome := s.live().Outcome(resp); {
	case outcome == metrics.OrderConfirmed:
		return result{kind: attemptConfirmed, move: ledger.MoveConfirm, answer: answerOf(resp)}
	case outcome != metrics.OrderRejected:
		return result{kind: attemptUnknown}
	case word == soldOut:
		if told := s.live().SoldOut; told != nil {
			told(sku)
		}
	case !stated && busy:
		return notNow(now, o, retryAfter(now, resp))
	case !stated && o.Open: // it says nothing of the earlier attempt, which may have made the order
		return result{kind: attemptUnknown}
	case now.UnixMilli() >= o.Deadline:
		return s.again(o, ledger.MoveAgain)
	}
	return result{kind: attemptReleased, move: ledger.MoveRelease, answer: answerOf(resp)}
}

// soldOut is the word of proxy.OrderHeader by which the upstream says that it has no stock.
const soldOut = "sold-out"

const (
	firstNotNow   = time.Second
	notNowDoubles = 4
	longestNotNow = 24 * time.Hour // no order waits for longer
)

// notNow lets an order wait again that the upstream rejects for now: for as long as it says, and longer each time.
func notNow(now time.Time, o *ledger.Leased, retryAfter time.Duration) result {
	wait := max(retryAfter, firstNotNow<<min(max(o.Lease-o.Attempt, 0), notNowDoubles))
	return result{kind: attemptAgain, move: ledger.MoveNotNow, from: now.Add(wait).UnixMilli()}
}

// again lets an order wait again, unless it had enough attempts.
func (s *sender) again(o *ledger.Leased, move ledger.Move) result {
	if o.Attempt >= int64(s.live().Attempts) {
		return result{kind: attemptAgain, move: ledger.MoveLater, time: ledger.Never,
			why: fmt.Sprintf("it had %d attempts", o.Attempt)}
	}
	return result{kind: attemptAgain, move: move}
}

// retryAfter is for how long the upstream wants no request: seconds, or a date (RFC 9110, section 10.2.3).
func retryAfter(now time.Time, resp *fasthttp.Response) (wait time.Duration) {
	text := string(resp.Header.Peek("Retry-After"))
	if n, err := strconv.ParseUint(text, 10, 64); err == nil || errors.Is(err, strconv.ErrRange) {
		wait = time.Duration(min(n, uint64(longestNotNow/time.Second))) * time.Second
	} else if date, err := http.ParseTime(text); err == nil {
		wait = date.Sub(now)
	}
	return min(max(wait, 0), longestNotNow)
}

// keptOfAnswer are the fields of an answer that are kept: what a client needs to read it, and no cookies, since who
// fetches it may hold but a link.
var keptOfAnswer = [...]string{"Content-Type", "Content-Language", "Content-Encoding", "Location"}

// answerOf is what is kept of an answer.
func answerOf(resp *fasthttp.Response) string {
	a := KeptAnswer(resp.StatusCode(), func(name string) string { return string(resp.Header.Peek(name)) }, resp.Body())
	return a.Text()
}

// KeptAnswer is what is kept of an answer.
func KeptAnswer(status int, field func(name string) string, body []byte) proxy.KeptAnswer {
	a := proxy.KeptAnswer{Status: status}
	for _, name := range keptOfAnswer {
		if v := field(name); v != "" {
			a.Fields = append(a.Fields, proxy.KeptField{Name: name, Value: v})
		}
	}
	if len(body) <= maxAnswerBody {
		a.Body = string(body)
	} else {
		a.TooLong = true
	}
	if len(a.Text()) > ledger.MaxAnswer {
		return proxy.KeptAnswer{Status: status, TooLong: true}
	}
	return a
}
