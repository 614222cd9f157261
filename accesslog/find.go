package accesslog

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"hash"
	"time"
)

// Question selects lines: those that match every field that is not empty.
type Question struct {
	RequestID, User, SKU string
}

// Answer has the matching lines that are still in memory.
type Answer struct {
	Lines []json.RawMessage // newest first
	Since time.Time         // of the oldest line in memory; zero = there is none
}

// Find returns at most so many matching lines from memory. Lines are kept with the output "off" too. Find searches a
// copy of 1 MiB at a time. The writer does not wait for the search, and lines that it adds meanwhile may be missing.
func (l *Log) Find(q Question, most int) (a Answer) {
	var texts [][]byte
	if q.RequestID != "" {
		texts = append(texts, appendText(nil, "request_id", q.RequestID))
	}
	if q.User != "" {
		user := append(appendUser([]byte(`,"user":"`), hmac.New(sha256.New, l.key), []byte(q.User)), '"')
		texts = append(texts, user)
	}
	if q.SKU != "" {
		texts = append(texts, appendText(nil, "sku", q.SKU))
	}
	if len(texts) == 0 {
		return a
	}
	lines, oldest := l.recent.newest(most, texts...)
	for _, line := range lines {
		a.Lines = append(a.Lines, line)
	}
	var first struct{ Time time.Time }
	if json.Unmarshal(oldest, &first) == nil {
		a.Since = first.Time
	}
	return a
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
