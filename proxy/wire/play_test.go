package wire

import (
	"bytes"
	"errors"
	"io"
)

// small limits, so that short inputs can reach them.
var small = Limits{Header: 1024, Target: 128, Protected: []string{"X-User-Id", "X-Shop-"}}

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

// played is what a Reader made of a connection.
type played struct {
	whole []string // the requests that were handed on whole
	heads []Head   // what was learned of each
	part  string   // the handed bytes of a request that did not end
	err   error    // the error that ended it all
}

// play reads all of data, arriving in pieces of n bytes, into a buffer of size bytes.
func play(limits Limits, data []byte, n, size int) (out played) {
	r := NewGuard(limits).NewReader(&pieces{bytes.Clone(data), n})
	p := make([]byte, size)
	var part []byte
	for {
		n, err := r.Read(p)
		if err != nil {
			out.part, out.err = string(part), err
			return out
		}
		if r.broken != nil && r.body.place == noBody && r.ready == 0 && r.broken != io.EOF {
			continue // the byte that announces a refused head
		}
		part = append(part, p[:n]...)
		if r.body.place == noBody && r.ready == 0 {
			out.whole = append(out.whole, string(part))
			out.heads = append(out.heads, r.Head())
			part = part[:0]
		}
	}
}

// verdict is the kind of the violation that ended a play, or fine.
func (p played) verdict() Kind {
	if v, ok := errors.AsType[Violation](p.err); ok {
		return v.Kind
	}
	return fine
}
