package proxy

import (
	"bytes"
	"strconv"
	"strings"
	"time"

	"sluice/proxy/page"
)

// PageFiles are the shop's own pages and languages: package page says what files there may be.
type PageFiles struct {
	Dir   string            // for messages
	Files map[string]string // by name
}

var classNames = [numClasses]string{"busy", "sold_out", "not_started", "ended", "paused", "confirmed", "duplicate", "denied", "unidentified", "unknown_sku", "bad_request", "unavailable", "shop"}

// CompileResponses reports what New would find wrong with in.
func CompileResponses(in Responses) error {
	_, err := newResponder(in)
	return err
}

func (a *responder) openPages() (err error) {
	var keys []string
	for _, p := range phrases {
		keys = append(keys, p.key)
	}
	for reason := Admitted + 1; reason < numReasons; reason++ {
		keys = append(keys, reason.String())
	}
	if a.book, err = page.Open(a.Pages.Dir, a.Pages.Files, classNames[:], keys); err != nil {
		return err
	}
	a.tongues, err = openTongues(a.Languages, a.book)
	return err
}

// What differs from page to page of one class and language. The marks follow those of other bodies.
const (
	plainIDGap gap = numGaps + iota
	plainSKUGap
	secondsGap
	waitMSGap
	clockGap
	againGap // where to try again
	homeGap  // where the shopper came from
	numPageGaps
)

// pageMarks are the marks of those gaps; no template may have them in its text, but for tab, line feed and return, which
// they leave out.
const pageMarks = "\x05\x06\x07\x08\x0b\x0c\x0e"

// Words that stand for the gaps while a template is executed: of letters, so that no context escapes them.
var stands = [...]string{"SluiceGapID", "SluiceGapSKU", "SluiceGapSeconds", "SluiceGapMS", "SluiceGapClock", "SluiceGapAgain", "SluiceGapHome", "SluiceGapOrder"}

// unmarked turns them into marks.
var unmarked = strings.NewReplacer(stands[0], "\x05", stands[1], "\x06", stands[2], "\x07", stands[3], "\x08", stands[4], "\x0b", stands[5], "\x0c",
	stands[6], "\x0e", stands[7], orderMark)

// page renders the page of a reason.
func (a *responder) page(reason Reason, answer Answer, t *tongue, detail phrase) string {
	v := page.View{
		Lang: t.tag, Title: t.title(reason), Detail: t.say(detail), Lead: detail != oneOnly,
		Reason: reason.String(), Class: classNames[refusals[reason].class], Status: answer.Status,
		Opens: reason == NotStarted, Waits: reason == NotStarted || answer.RetryAfter > 0 && !reason.mayHavePlaced(),
		JitterMS: a.Jitter.Milliseconds(), RequestID: stands[0], SKU: stands[1], RetryAfter: stands[2], WaitMS: stands[3], Clock: stands[4],
		Back: stands[6], BackLabel: t.say(goBack), TimeLabel: t.say(retryIn),
	}
	switch {
	case v.Opens:
		v.Back, v.TimeLabel, v.Hint = stands[5], t.say(startsIn), t.say(goesOn)
	case v.Waits:
		v.Back, v.BackLabel, v.Hint = stands[5], t.say(tryAgain), t.say(comeBack)
	case reason == InProgress, reason == Duplicate:
		v.Hint = t.say(lookFirst)
	}
	if reason.hasOrder() {
		v.Order = stands[7]
	}
	return unmarked.Replace(a.book.Render(v))
}

// markOf is the gap that a mark stands for.
func markOf(mark byte) gap {
	if i := strings.IndexByte(pageMarks, mark); i >= 0 {
		return plainIDGap + gap(i)
	}
	return gap(mark)
}

// fillPage writes what a gap of a page is for. A template may have put it anywhere, in an attribute, a script or an
// address: so only what means nothing in any of them is written.
func (r *request) fillPage(out *reply, g gap, wait int) {
	if wait == 0 {
		wait = soonest
	}
	switch g {
	case plainIDGap:
		out.sayBytes(harmless(r.id, "-._~="))
	case plainSKUGap:
		out.sayBytes(harmless(r.sku, "-._~="))
	case secondsGap:
		r.number = strconv.AppendInt(r.number[:0], int64(wait), 10)
		out.sayBytes(r.number)
	case waitMSGap:
		r.number = strconv.AppendInt(r.number[:0], r.untilRetry(wait).Milliseconds(), 10)
		out.sayBytes(r.number)
	case clockGap:
		r.number = appendClock(r.number[:0], r.untilRetry(wait))
		out.sayBytes(r.number)
	case againGap:
		appendPath(out, r.again())
	case homeGap:
		appendPath(out, r.cameFrom())
	}
}

// soonest is when, in seconds, a page comes again that nobody could tell how long to wait: it must not come at once.
const soonest = 5

// untilRetry is until the start where that is what the shopper waits for, else until the seconds of Retry-After are over.
func (r *request) untilRetry(seconds int) time.Duration {
	if r.reason == NotStarted && r.wait > 0 {
		return r.wait
	}
	return time.Duration(seconds) * time.Second
}

// appendClock appends 0:42, 59:00 or 1:00:00, rounded up to seconds.
func appendClock(dst []byte, d time.Duration) []byte {
	s := int64((d + time.Second - 1) / time.Second)
	two := func(n int64) { dst = append(dst, byte('0'+n/10), byte('0'+n%10)) }
	if h := s / 3600; h > 0 {
		dst = append(strconv.AppendInt(dst, h, 10), ':')
		two(s / 60 % 60)
	} else {
		dst = strconv.AppendInt(dst, s/60, 10)
	}
	dst = append(dst, ':')
	two(s % 60)
	return dst
}

// harmless hides what holds anything but ASCII letters, digits and marks.
func harmless(b []byte, marks string) []byte {
	for _, c := range b {
		if !(c|0x20 >= 'a' && c|0x20 <= 'z' || c >= '0' && c <= '9') && strings.IndexByte(marks, c) < 0 {
			return nil
		}
	}
	return b
}

// again is where the request can be made once more by following a link: its own address, unless it is one where orders
// are placed; a page that goes on by itself must not order by itself.
func (r *request) again() []byte {
	if len(r.path) > 0 && reads(r.method) && !r.route.stocked() {
		return r.asked.Target()
	}
	if from := r.cameFrom(); !r.orders(from) {
		return from
	}
	return nil
}

// orders reports whether following a link to target could place an order, however the shop reads its path.
func (r *request) orders(target []byte) (order bool) {
	if len(target) == 0 || target[0] != '/' {
		return false
	}
	target, _ = cut(target, '#')
	path, _ := splitTarget(target)
	caught := r.caught
	known := r.eachReading(path, func(path []byte, _ int) bool {
		order = r.proxy.nearer(r.proxy.find(get, path, r, true), get, path, r).stocked()
		return !order
	})
	r.caught = caught
	return order || !known
}

var get = []byte("GET")

// cameFrom is the path of the shop's page from which the request came; nil when it does not say so.
func (r *request) cameFrom() []byte {
	_, rest, found := bytes.Cut(r.asked.Peek("Referer"), []byte("://"))
	if host := r.asked.Host(); found && len(host) > 0 && bytes.HasPrefix(rest, host) {
		return rest[len(host):]
	}
	return nil
}

// appendPath writes a path of this host, or "/" for what is none, or could mean something to the page around it.
func appendPath(out *reply, path []byte) {
	path, _ = cut(path, '#')
	if len(path) == 0 || path[0] != '/' || len(path) > 1 && path[1] == '/' || len(path) > maxTarget || harmless(path, "-._~=/?&%:@+,;!$*") == nil {
		out.say("/")
		return
	}
	for {
		part, rest := cut(path, '&')
		out.sayBytes(part)
		if len(part) == len(path) {
			return
		}
		out.say("&amp;")
		path = rest
	}
}
