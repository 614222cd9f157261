package proxy

import (
	"bytes"

	"sluice/internal/octets"
	"sluice/queue/message"
)

// keptFields are the header fields that wait with an order: no more than the upstream needs to place it.
var keptFields = [...]string{"Host", "Accept", "Accept-Language", "Authorization", "Content-Encoding",
	"Content-Language", "Content-Type", "Cookie", "Origin", "Referer", "User-Agent", "X-Csrf-Token", "X-Requested-With",
	"X-Xsrf-Token", "X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto", "Via"}

// waitingFields are those of the header lines of a request that wait with it. requestID names one more; "" = none.
func waitingFields(lines []byte, requestID string) (kept []message.Field) {
	for len(lines) > len("\r\n") {
		var line []byte
		line, lines, _ = bytes.Cut(lines, []byte("\r\n"))
		if name, value := octets.Cut(line, ':'); isKeptField(name, requestID) {
			kept = append(kept, message.Field{Name: string(name), Value: string(octets.Trim(value))})
		}
	}
	return kept
}

func isKeptField(name []byte, requestID string) bool {
	for _, kept := range keptFields {
		if octets.EqualFold(name, kept) {
			return true
		}
	}
	return requestID != "" && octets.EqualFold(name, requestID)
}
