package accesslog

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"hash"
	"time"
)

// Question says which lines are looked for: those that fit all that is not empty.
type Question struct {
	RequestID, User, SKU string
}

// Answer is what is remembered of them.
type Answer struct {
	Lines []json.RawMessage // the newest first
	Since time.Time         // of the oldest line of all; zero = nothing is remembered
}

// Find looks for at most so many of the lines that are remembered: all that were written, and those that "off" kept from
// being written. The writer waits meanwhile, and no request.
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
	lines, oldest := l.recent.find(most, texts...)
	for _, line := range lines {
		a.Lines = append(a.Lines, line)
	}
	var first struct{ Time time.Time }
	if json.Unmarshal(oldest, &first) == nil {
		a.Since = first.Time
	}
	return a
}

const userBytes = 8 // of the hash that are shown

// appendUser appends what stands for a user: equal for equal users, and of no use to whoever has not the key.
func appendUser(dst []byte, of hash.Hash, user []byte) []byte {
	of.Reset()
	of.Write(user)
	start := len(dst)
	dst = of.Sum(dst) // which has the room already
	sum := [userBytes]byte(dst[start:])
	return hex.AppendEncode(dst[:start], sum[:])
}
