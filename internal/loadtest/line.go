package loadtest

import (
	"bufio"
	"context"
	"encoding/json"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/valyala/fasthttp"

	"sluice/proxy/reject"
)

// ending is how a buyer went home.
type ending int

const (
	bought     ending = iota // with an order
	soldOut                  // told that there is nothing left
	turnedAway               // with another final answer
	unsure                   // it is unknown what became of the order
	gaveUp                   // no tries or no patience left
	numEndings
)

// answer is what one request came to.
type answer struct {
	status int
	reason string // the gate's word; "" = the shop answered
	wait   time.Duration
	link   string // where the gate tells what became of the order
	state  string // of an order that was looked up
}

// nothing are the gate's words that tell nothing of the order.
const nothing = " upstream_error upstream_timeout in_progress internal "

// comesBack tells whether a buyer who was rejected for a reason asks again.
func comesBack(reason string) bool {
	return slices.ContainsFunc(reject.Reasons(), func(r reject.Reason) bool {
		return r.String() == reason && (r.Transient() || r == reject.NotStarted)
	})
}

// unsure tells whether an order may exist.
func (a answer) unsure() bool {
	return a.reason != "" && strings.Contains(nothing, " "+a.reason+" ") || a.reason == "" && a.status >= 500
}

// ends tells whether a buyer goes home with it, and how.
func (a answer) ends() (ending, bool) {
	switch {
	case a.unsure(), comesBack(a.reason):
		return 0, false
	case a.reason == "confirmed", a.reason == "" && a.status < 300:
		return bought, true
	case a.reason == "sold_out", a.reason == "" && a.status == fasthttp.StatusConflict:
		return soldOut, true
	}
	return turnedAway, true
}

// line is one keep-alive connection of the crowd, which many buyers use in turn. It never sends anything twice.
type line struct {
	front string
	conn  net.Conn
	in    *bufio.Reader
	out   []byte
	resp  fasthttp.Response
	stop  func() bool
}

const (
	dialWithin   = 5 * time.Second
	answerWithin = 30 * time.Second
	maxAnswer    = 64 << 10
)

func (l *line) close() {
	if l.conn != nil {
		l.stop()
		_ = l.conn.Close()
		l.conn = nil
	}
}

func (l *line) dial(ctx context.Context) bool {
	d := net.Dialer{Timeout: dialWithin}
	conn, err := d.DialContext(ctx, "tcp", l.front)
	if err != nil {
		return false
	}
	l.conn = conn
	if l.in == nil {
		l.in = bufio.NewReaderSize(conn, 4<<10)
	}
	l.in.Reset(conn)
	l.stop = context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) }) // long past: ends what waits
	return true
}

// exchange sends what is in out, and reads the answer.
func (l *line) exchange(ctx context.Context) (a answer, ok bool) {
	if l.conn == nil && !l.dial(ctx) {
		return a, false
	}
	_ = l.conn.SetDeadline(time.Now().Add(answerWithin))
	if ctx.Err() != nil { // the deadline that ends it may have been overwritten
		return a, false
	}
	l.resp.Reset()
	if _, err := l.conn.Write(l.out); err != nil || l.resp.ReadLimitBody(l.in, maxAnswer) != nil {
		l.close()
		return a, false
	}
	a = l.read()
	if l.resp.ConnectionClose() {
		l.close()
	}
	return a, true
}

// ReasonHeader is where the gate of a load test gives its reasons.
const ReasonHeader = "X-Sluice-Reason"

func (l *line) read() answer {
	a := answer{status: l.resp.StatusCode(), reason: string(l.resp.Header.Peek(ReasonHeader))}
	if seconds, err := strconv.ParseUint(string(l.resp.Header.Peek("Retry-After")), 10, 16); err == nil {
		a.wait = min(time.Duration(seconds)*time.Second, time.Minute)
	}
	link, ok := strings.CutSuffix(string(l.resp.Header.Peek("Link")), `>; rel="status"`)
	if ok && strings.HasPrefix(link, "</") && !strings.ContainsAny(link, " \r\n") && len(link) < 1024 {
		a.link = link[1:]
	}
	if a.reason == "" && a.status == 200 && len(l.resp.Body()) < 1024 {
		var said struct{ State string }
		if json.Unmarshal(l.resp.Body(), &said) == nil {
			a.state = said.State
		}
	}
	return a
}
