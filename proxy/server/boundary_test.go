package server

import (
	"io"
	"slices"
	"testing"
)

// atBoundary reports that the last request was read whole, to the last byte of its body, and that no byte of a next
// one has come.
func (r *reader) atBoundary() bool {
	return r.body.place == atEnd && len(r.came()) == 0 && !r.begun && r.broken == nil && !r.raw
}

func TestReader_TellsItsSourceThatAHeadHasBegun(t *testing.T) {
	var began []bool
	var r *reader
	src := &pieces{[]byte(get() + get()), 20}
	r = newParser(small).newReader(readerFunc(func(p []byte) (int, error) {
		began = append(began, r.pipelined())
		return src.Read(p)
	}))
	readHead(r)
	readHead(r)
	if want := []bool{false, true, true, true}; !slices.Equal(began, want) {
		t.Fatalf("began %v, want %v", began, want)
	}
}

func TestReader_TellsItsSourceWhatBytesAreFor(t *testing.T) {
	type told struct{ atBoundary, began, inBody bool }
	var all []told
	var r *reader
	src := &pieces{[]byte(chunked("1\r\na\r\n0\r\n\r\n") + get()), len(chunked("")) - 5}
	r = newParser(small).newReader(readerFunc(func(p []byte) (int, error) {
		if now := (told{r.atBoundary(), r.pipelined(), !r.bodyRead()}); len(all) == 0 || all[len(all)-1] != now {
			all = append(all, now)
		}
		n := copy(p[:1], src.data)
		src.data = src.data[n:]
		if n == 0 {
			return 0, io.EOF
		}
		return n, nil
	}))
	p := make([]byte, 4096)
	for range 2 {
		readHead(r)
		readAll(r, p)
	}
	idle, head, body := told{atBoundary: true}, told{began: true}, told{inBody: true}
	if want := []told{idle, head, body, idle, head}; !slices.Equal(all, want) {
		t.Fatalf("told %+v, want %+v", all, want)
	}
}
