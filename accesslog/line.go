package accesslog

import (
	"encoding/hex"
	"hash"
	"net/netip"
	"strconv"
	"time"
	"unicode/utf8"

	"sluice/internal/octets"
	"sluice/proxy/metrics"
	"sluice/proxy/reject"
)

// stamp is RFC 3339 with milliseconds, in UTC.
const stamp = "2006-01-02T15:04:05.000Z"

// appendLine appends e, whose times are Unix ns, as one line. users hashes a user.
func (l *Log) appendLine(dst []byte, e *metrics.AccessRecord, users hash.Hash) []byte {
	dst = append(dst, `{"time":"`...)
	dst = append(time.Unix(0, e.Arrived).UTC().AppendFormat(dst, stamp), '"')
	dst = appendText(dst, "request_id", e.ID)
	dst = l.appendClient(dst, e.Client)
	dst = appendText(dst, "method", e.Method)
	dst = appendText(dst, "path", e.Path)
	if e.Route != "" {
		dst = appendText(dst, "route", e.Route)
		dst = appendText(dst, "gate", e.Gate.String())
	}
	dst = appendText(dst, "sku", e.SKU)
	if len(e.User) > 0 {
		dst = append(dst, `,"user":"`...)
		dst = append(appendUser(dst, users, e.User), '"')
	}
	if e.Status != 0 {
		dst = appendNumber(dst, "status", int64(e.Status))
	}
	dst = l.appendDecision(dst, e)
	if e.Sent {
		dst = appendText(dst, "outcome", e.Outcome.String())
		dst = appendText(dst, "target", e.Target)
		dst = appendNumber(dst, "shop_ms", (e.Answered-e.Decided)/1e6)
	}
	if e.BytesIn >= 0 {
		dst = appendNumber(dst, "bytes_in", e.BytesIn)
	}
	if e.BytesOut >= 0 {
		dst = appendNumber(dst, "bytes_out", e.BytesOut)
	}
	dst = appendNumber(dst, "decision_us", (e.Decided-e.Arrived)/1e3)
	dst = appendNumber(dst, "total_ms", (e.Done-e.Arrived)/1e6)
	dst = appendText(dst, "config", e.Version)
	return append(dst, "}\n"...)
}

// appendDecision appends what was decided, why, and about which order.
func (l *Log) appendDecision(dst []byte, e *metrics.AccessRecord) []byte {
	dst = appendText(dst, "reason", e.Reason.String())
	if e.Detail != (reject.Detail{}) {
		var buffer [128]byte
		dst = appendText(dst, "detail", e.Detail.AppendText(buffer[:0]))
	}
	if e.Observed != reject.Admitted {
		dst = appendText(dst, "observed", e.Observed.String())
	}
	dst = appendText(dst, "limit", e.Limit)
	if e.Wait > 0 {
		dst = appendNumber(dst, "wait_ms", int64((e.Wait+time.Millisecond-1)/time.Millisecond))
	}
	dst = appendText(dst, "serial", e.Serial)
	if !e.Reserved {
		return dst
	}
	dst = appendText(dst, "order", e.Order.String())
	if hold := time.Duration(l.hold.Load()); hold > 0 && e.Deadline > 0 {
		dst = append(dst, `,"redis_time":"`...)
		dst = append(time.UnixMilli(e.Deadline).Add(-hold).UTC().AppendFormat(dst, stamp), '"')
	}
	return dst
}

func (l *Log) appendClient(dst []byte, client netip.Addr) []byte {
	if !client.IsValid() {
		return append(dst, `,"client":"local"`...) // came by a unix socket
	}
	if l.mask.Load() {
		client = masked(client)
	}
	dst = append(dst, `,"client":"`...)
	return append(client.AppendTo(dst), '"')
}

// masked returns the network of an address: /24 for IPv4, and /48 for IPv6, the network of one household.
func masked(client netip.Addr) netip.Addr {
	bits := 48
	if client.Is4() {
		bits = 24
	}
	network, err := client.Prefix(bits)
	if err != nil {
		return netip.Addr{}
	}
	return network.Addr()
}

func appendNumber(dst []byte, name string, n int64) []byte {
	dst = append(append(append(dst, `,"`...), name...), `":`...)
	return strconv.AppendInt(dst, n, 10)
}

// appendText appends a member; an empty one is left out.
func appendText[T string | []byte](dst []byte, name string, value T) []byte {
	if len(value) == 0 {
		return dst
	}
	dst = append(append(append(dst, `,"`...), name...), `":`...)
	return appendQuoted(dst, value)
}

// appendQuoted appends a JSON string (RFC 8259, section 7). Control characters are escaped, including those of C1, so
// that a terminal that shows the log does not execute them; bidi controls, so that no name looks like another one.
// Invalid UTF-8 becomes U+FFFD.
func appendQuoted[T string | []byte](dst []byte, value T) []byte {
	const hex = "0123456789abcdef"
	dst = append(dst, '"')
	for i := 0; i < len(value); {
		c := value[i]
		if c < utf8.RuneSelf {
			i++
			switch {
			case c == '"' || c == '\\':
				dst = append(dst, '\\', c)
			case c < ' ' || c == 0x7f:
				dst = append(dst, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
			default:
				dst = append(dst, c)
			}
			continue
		}
		end := min(i+utf8.UTFMax, len(value))
		r, size := utf8.DecodeRune([]byte(value[i:end]))
		if r < 0xa0 || octets.IsBidiControl(r) {
			dst = append(dst, '\\', 'u', hex[r>>12], hex[r>>8&15], hex[r>>4&15], hex[r&15])
		} else {
			dst = utf8.AppendRune(dst, r)
		}
		i += size
	}
	return append(dst, '"')
}

const userBytes = 8 // bytes of the hash that are logged

// appendUser appends the hash of a user: equal for equal users, and meaningless without the key.
func appendUser(dst []byte, of hash.Hash, user []byte) []byte {
	of.Reset()
	of.Write(user)
	start := len(dst)
	dst = of.Sum(dst) // which has the room already
	sum := [userBytes]byte(dst[start:])
	return hex.AppendEncode(dst[:start], sum[:])
}
