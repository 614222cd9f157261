package accesslog

import (
	"strconv"
	"time"

	"sluice/proxy"
)

// summary is what the last line of a second was made of.
type summary struct {
	Totals
	left    uint64 // refusals that no line told of, since the start
	dropped uint64
}

// summarize tells how many requests there were in the second that is over, where the lines do not: refusals were left
// out, or lines lost. The totals are read before the rings are drained: what is counted has then been told as well.
func (w *writer) summarize(totals func() Totals) {
	next := summary{Totals: totals(), dropped: w.lost()}
	w.drain()
	for reason, refused := range next.Refused {
		if told := w.told[reason]; refused > told {
			next.left += refused - told
		}
	}
	if next.left > w.said.left || next.dropped > w.said.dropped {
		w.buffer = next.append(w.buffer, &w.said, time.Now())
		w.lines++
	}
	next.left = max(next.left, w.said.left)
	w.said = next
}

// append appends the line, with what has changed since the summary before.
func (s *summary) append(dst []byte, before *summary, now time.Time) []byte {
	dst = append(dst, `{"time":"`...)
	dst = append(now.UTC().AppendFormat(dst, stamp), `","summary":true,"refused":{`...)
	first := true
	for reason, refused := range s.Refused {
		if n := refused - before.Refused[reason]; n > 0 {
			if !first {
				dst = append(dst, ',')
			}
			first = false
			dst = appendQuoted(dst, proxy.Reason(reason).String())
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
