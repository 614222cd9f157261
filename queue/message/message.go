// Package message writes orders that wait, and the upstream's answers to them, as text for a store.
//
// It promises that what is read is what was written, whatever bytes a body has.
//
// It does not decide which header fields are kept: its callers do.
package message

import (
	"errors"
	"strconv"
	"strings"
)

// Field is one header line. Neither part has a line end.
type Field struct{ Name, Value string }

// Request is an order as the upstream shall see it, without what each attempt adds.
type Request struct {
	Method, Target string
	Fields         []Field // Host first
	HasBody        bool    // the client announced one, if only an empty one
	Body           string
}

// Answer is what became of an order.
type Answer struct {
	State   string // "expired" or "cancelled"; "" = the upstream has answered, or nothing is known
	Status  int    // of the upstream's answer; 0 = there is none
	Fields  []Field
	Body    string
	TooLong bool // the body was too long to be kept
}

// The states of an Answer.
const (
	Expired   = "expired"
	Cancelled = "cancelled"
)

var errUnreadable = errors.New("the text of an order cannot be read")

// Text is r as DecodeRequest reads it.
func (r *Request) Text() string {
	return text(strings.Join([]string{r.Method, r.Target, flag(r.HasBody)}, "\n"), r.Fields, r.Body)
}

// DecodeRequest reads what Text has written.
func DecodeRequest(s string) (r Request, err error) {
	head, fields, body, err := parts(s, 3)
	if err != nil {
		return r, err
	}
	return Request{Method: head[0], Target: head[1], HasBody: head[2] == flag(true), Fields: fields, Body: body}, nil
}

// Text is a as DecodeAnswer reads it.
func (a *Answer) Text() string {
	return text(strings.Join([]string{a.State, strconv.Itoa(a.Status), flag(a.TooLong)}, "\n"), a.Fields, a.Body)
}

// DecodeAnswer reads what Text has written.
func DecodeAnswer(s string) (a Answer, err error) {
	head, fields, body, err := parts(s, 3)
	if err != nil {
		return a, err
	}
	a = Answer{State: head[0], TooLong: head[2] == flag(true), Fields: fields, Body: body}
	if a.Status, err = strconv.Atoi(head[1]); err != nil || a.Status < 0 || a.Status > 999 {
		return Answer{}, errUnreadable
	}
	return a, nil
}

func flag(on bool) string {
	if on {
		return "1"
	}
	return "0"
}

// text is a head, header lines, an empty line and a body.
func text(head string, fields []Field, body string) string {
	var b strings.Builder
	b.WriteString(head)
	for _, f := range fields {
		b.WriteString("\n" + f.Name + ":" + f.Value)
	}
	b.WriteString("\n\n" + body)
	return b.String()
}

// parts reads what text has written, with a head of n lines.
func parts(s string, n int) (head []string, fields []Field, body string, err error) {
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
		fields = append(fields, Field{name, value})
	}
}
