package proxy

// Orders that wait, and the upstream's answers to them, as text for a store: what is read is what was written, whatever
// bytes a body has. The callers decide which header fields are kept.

import (
	"errors"
	"strconv"
	"strings"
)

// KeptField is one header line. Neither part has a line end.
type KeptField struct{ Name, Value string }

// QueuedRequest is an order as the upstream shall see it, without what each attempt adds.
type QueuedRequest struct {
	Method, Target string
	Fields         []KeptField // Host first
	HasBody        bool        // the client announced one, if only an empty one
	Body           string
}

// KeptAnswer is what became of an order.
type KeptAnswer struct {
	State   string // "expired" or "cancelled"; "" = the upstream has answered, or nothing is known
	Status  int    // of the upstream's answer; 0 = there is none
	Fields  []KeptField
	Body    string
	TooLong bool // the body was too long to be kept
}

// The states of a KeptAnswer.
const (
	OrderExpired   = "expired"
	OrderCancelled = "cancelled"
)

var errUnreadable = errors.New("the text of an order cannot be read")

// Text is q as DecodeQueuedRequest reads it.
func (q *QueuedRequest) Text() string {
	return keptText(strings.Join([]string{q.Method, q.Target, keptFlag(q.HasBody)}, "\n"), q.Fields, q.Body)
}

// DecodeQueuedRequest reads what Text has written.
func DecodeQueuedRequest(s string) (r QueuedRequest, err error) {
	head, fields, body, err := keptParts(s, 3)
	if err != nil {
		return r, err
	}
	return QueuedRequest{Method: head[0], Target: head[1], HasBody: head[2] == keptFlag(true), Fields: fields,
		Body: body}, nil
}

// Text is k as DecodeKeptAnswer reads it.
func (k *KeptAnswer) Text() string {
	return keptText(strings.Join([]string{k.State, strconv.Itoa(k.Status), keptFlag(k.TooLong)}, "\n"), k.Fields, k.Body)
}

// DecodeKeptAnswer reads what Text has written.
func DecodeKeptAnswer(s string) (a KeptAnswer, err error) {
	head, fields, body, err := keptParts(s, 3)
	if err != nil {
		return a, err
	}
	a = KeptAnswer{State: head[0], TooLong: head[2] == keptFlag(true), Fields: fields, Body: body}
	if a.Status, err = strconv.Atoi(head[1]); err != nil || a.Status < 0 || a.Status > 999 {
		return KeptAnswer{}, errUnreadable
	}
	return a, nil
}

func keptFlag(on bool) string {
	if on {
		return "1"
	}
	return "0"
}

// keptText is a head, header lines, an empty line and a body.
func keptText(head string, fields []KeptField, body string) string {
	var b strings.Builder
	b.WriteString(head)
	for _, f := range fields {
		b.WriteString("\n" + f.Name + ":" + f.Value)
	}
	b.WriteString("\n\n" + body)
	return b.String()
}

// keptParts reads what keptText has written, with a head of n lines.
func keptParts(s string, n int) (head []string, fields []KeptField, body string, err error) {
	for range n {
		line, rest, ok := strings.Cut(s, "\n")
		if !ok {
			return nil, nil, "", errUnreadable
		}
		head, s = append(head, line), rest
	}
	for {
		line, rest, ok := strings.Cut(s, "\n")
		if !ok {
			return nil, nil, "", errUnreadable
		}
		if s = rest; line == "" {
			return head, fields, s, nil
		}
		name, value, ok := strings.Cut(line, ":")
		if !ok {
			return nil, nil, "", errUnreadable
		}
		fields = append(fields, KeptField{name, value})
	}
}
