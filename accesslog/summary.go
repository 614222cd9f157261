package accesslog

import (
	"strconv"
	"time"

	"sluice/proxy/reject"
)

// summary is the content of one summary line.
type summary struct {
	Totals
	left    uint64 // rejections without a line of their own, since the start
	dropped uint64
}

// summarize adds a line with the number of requests in the past second if rejections were left out or lines were lost.
// It reads the totals before the records, so a rejection that is counted has a record or was left out.
func (w *writer) summarize(totals func() Totals) {
	next := summary{Totals: totals()}
	w.drain()
	logged, lost := w.recent.counts()
	next.dropped = lost + w.failed.Load()
	for reason, rejected := range next.Rejected {
		if logged := w.before[reason] + logged[reason]; rejected > logged {
			next.left += rejected - logged
		}
	}
	if next.left > w.said.left || next.dropped > w.said.dropped {
		w.buffer = next.append(w.buffer, &w.said, time.Now())
		w.lines++
	}
	next.left = max(next.left, w.said.left)
	w.said = next
}

// append appends the line with the difference to the summary before.
func (s *summary) append(dst []byte, before *summary, now time.Time) []byte {
	dst = append(dst, `{"time":"`...)
	dst = append(now.UTC().AppendFormat(dst, stamp), `","summary":true,"rejected":{`...)
	first := true
	for reason, rejected := range s.Rejected {
		if n := rejected - before.Rejected[reason]; n > 0 {
			if !first {
				dst = append(dst, ',')
			}
			first = false
			dst = appendQuoted(dst, reject.Reason(reason).String())
			dst = append(dst, ':')
			dst = strconv.AppendUint(dst, n, 10)
		}
	}
	dst = append(dst, '}')
	dst = appendNumber(dst, "admitted", int64(s.Forwarded-before.Forwarded))
	dst = appendNumber(dst, "in_flight", int64(s.InFlight))
	if s.left > before.left {
		dst = appendNumber(dst, "left_out", int64(s.left-before.left))
	}
	if s.dropped > before.dropped {
		dst = appendNumber(dst, "dropped", int64(s.dropped-before.dropped))
	}
	return append(dst, "}\n"...)
}
