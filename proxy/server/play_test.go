package server

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
)

// small limits, so that short inputs can reach them.
var small = Limits{Header: 1024, Target: 128, Protected: []string{"X-User-Id", "X-Shop-", "Sluice-"}}

// pieces is a connection on which data arrives at most n bytes at a time.
type pieces struct {
	data []byte
	n    int
}

func (s *pieces) Read(p []byte) (int, error) {
	if len(s.data) == 0 {
		return 0, io.EOF
	}
	n := copy(p[:min(len(p), s.n)], s.data)
	s.data = s.data[n:]
	return n, nil
}

// readerFunc is a connection made of a function.
type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

// message is a request as it was handed on: its head as ReadHead gave it, its content as ReadBody did.
type message struct{ head, content string }

// played is what a Reader made of a connection.
type played struct {
	whole []message // the requests that were handed on whole
	heads []Head    // what was learned of each
	told  []string  // what each Request told, by its methods
	begun message   // what was handed on of a request that did not end
	err   error     // the error that ended it all
}

func (p played) equal(q played) bool {
	return p.err == q.err && p.begun == q.begun && slices.Equal(p.whole, q.whole) && slices.Equal(p.heads, q.heads) &&
		slices.Equal(p.told, q.told)
}

// play reads all of data, arriving in pieces of n bytes, bodies into a buffer of size bytes.
func play(limits Limits, data []byte, n, size int) (out played) {
	r := newParser(limits).newReader(&pieces{bytes.Clone(data), n})
	p := make([]byte, size)
	var q Request
	for {
		if out.err = r.readHead(&q); out.err != nil {
			return out
		}
		out.begun.head = string(q.text)
		told := tell(&q)
		content, err := readAll(r, p)
		out.begun.content = content
		if err != nil {
			out.err = err
			return out
		}
		out.whole = append(out.whole, out.begun)
		out.heads = append(out.heads, q.Head)
		out.told = append(out.told, told)
		out.begun = message{}
	}
}

// tell puts together what q tells of itself.
func tell(q *Request) string {
	version := "1.1"
	if q.HTTP10 {
		version = "1.0"
	}
	text := fmt.Sprintf("%s %s HTTP/%s for %s\n", q.Method, q.Target, version, q.Host)
	for name, value := range q.Fields {
		text += fmt.Sprintf("%s: %s\n", name, value)
	}
	return text
}

// readHead reads a head into a Request of its own. It is empty when the head is rejected.
func readHead(r *reader) (string, error) {
	var q Request
	err := r.readHead(&q)
	return string(q.text), err
}

// readAll reads the body behind the last head through p, to its end or to an error.
func readAll(r *reader, p []byte) (string, error) {
	var content []byte
	for {
		n, err := r.readBody(p)
		content = append(content, p[:n]...)
		if err == io.EOF {
			return string(content), nil
		}
		if err != nil {
			return string(content), err
		}
	}
}

// verdict is the rule of the violation that ended a play, or fine.
func (p played) verdict() Rule {
	if v, ok := errors.AsType[ProtocolError](p.err); ok {
		return v.Rule
	}
	return fine
}
