package room

import (
	"encoding/json"
	"strconv"

	"sluice/proxy/reject"
)

// me is what a client reads of its own place.
type me struct {
	Room       string `json:"room"`
	ServerTime int64  `json:"server_time_ms"`
	Phase      Phase  `json:"phase"`
	State      string `json:"state"` // "none" "waiting" "called" "missed" "invalid" "passed"
	Number     int64  `json:"number,omitempty"`
	Score      *int64 `json:"score,omitempty"`
	Ahead      *int64 `json:"ahead,omitempty"`
	ETA        *int64 `json:"eta_ms,omitempty"`
	Chance     string `json:"chance,omitempty"`        // "none": it is not worth waiting
	ClaimFrom  int64  `json:"claim_from_ms,omitempty"` // of one who is called, who waits until then
	ClaimUntil int64  `json:"claim_until_ms,omitempty"`
	PassUntil  int64  `json:"pass_until_ms,omitempty"`
	StartsAt   int64  `json:"starts_at_ms,omitempty"`
	Returns    int64  `json:"returns_until_ms,omitempty"`
	Poll       int64  `json:"poll_ms"`
	Stale      int64  `json:"stale_ms,omitempty"`
	Message    string `json:"message,omitempty"`
	Signed     string `json:"ticket,omitempty"` // of an answer to join
	Pass       string `json:"pass,omitempty"`   // of an answer to pass

	Barred reject.Reason `json:"-"` // of a page: why no client may join now
}

// Values of me.State beside those of room.Position.
const (
	hasNone   = "none"
	hasPassed = "passed"
)

// appendJSON appends m as encoding/json does. Polls are what most clients ask: by reflection it would take most of
// their time.
func (m *me) appendJSON(dst []byte) []byte {
	dst = append(append(dst, `{"room":"`...), m.Room...)
	dst = strconv.AppendInt(append(dst, `","server_time_ms":`...), m.ServerTime, 10)
	dst = append(append(dst, `,"phase":"`...), m.Phase...)
	dst = append(append(append(dst, `","state":"`...), m.State...), '"')
	dst = appendNumber(dst, `,"number":`, m.Number)
	for _, f := range [...]struct {
		name  string
		value *int64
	}{{`,"score":`, m.Score}, {`,"ahead":`, m.Ahead}, {`,"eta_ms":`, m.ETA}} {
		if f.value != nil {
			dst = strconv.AppendInt(append(dst, f.name...), *f.value, 10)
		}
	}
	dst = appendWord(dst, `,"chance":"`, m.Chance)
	dst = appendNumber(dst, `,"claim_from_ms":`, m.ClaimFrom)
	dst = appendNumber(dst, `,"claim_until_ms":`, m.ClaimUntil)
	dst = appendNumber(dst, `,"pass_until_ms":`, m.PassUntil)
	dst = appendNumber(dst, `,"starts_at_ms":`, m.StartsAt)
	dst = appendNumber(dst, `,"returns_until_ms":`, m.Returns)
	dst = strconv.AppendInt(append(dst, `,"poll_ms":`...), m.Poll, 10)
	dst = appendNumber(dst, `,"stale_ms":`, m.Stale)
	if m.Message != "" {
		text, _ := json.Marshal(m.Message) // a string never fails
		dst = append(append(dst, `,"message":`...), text...)
	}
	dst = appendWord(dst, `,"ticket":"`, m.Signed)
	dst = appendWord(dst, `,"pass":"`, m.Pass)
	return append(dst, "}\n"...)
}

// appendNumber appends n, but for 0.
func appendNumber(dst []byte, name string, n int64) []byte {
	if n == 0 {
		return dst
	}
	return strconv.AppendInt(append(dst, name...), n, 10)
}

// appendWord appends a word that needs no escaping, but for an empty one.
func appendWord(dst []byte, name, word string) []byte {
	if word == "" {
		return dst
	}
	return append(append(append(dst, name...), word...), '"')
}
