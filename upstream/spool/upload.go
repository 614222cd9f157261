package spool

import "io"

// Source is where an Upload comes from. ReadBody is as io.Reader's Read.
type Source interface {
	ReadBody(p []byte) (int, error)
}

// Upload is a body on its way from a client: what is in memory already, then what was read ahead, then what is still to
// come. The zero value has no body. It belongs to one goroutine.
type Upload struct {
	Err error // why it broke off; nil = it did not

	first  []byte
	ahead  *Body // nil = nothing was read ahead
	whole  bool  // all of it was
	source Source
}

// Begin makes it the body that first is the beginning of; the rest comes from source.
func (u *Upload) Begin(first []byte, source Source) { *u = Upload{first: first, source: source} }

// Begun reports that there is a body.
func (u *Upload) Begun() bool { return u.source != nil }

// Whole reports that the body does not wait for its client.
func (u *Upload) Whole() bool { return u.whole }

// ReadAhead reads until the body has ended, or s has no room for more. An error is that of the source, or of the file.
func (u *Upload) ReadAhead(s *Store) error {
	u.ahead = s.Body()
	for {
		switch _, err := u.ahead.Fill(sourceReader{u.source}); err {
		case nil:
		case io.EOF:
			u.whole = true
			return nil
		case ErrFull:
			return nil
		default:
			return err
		}
	}
}

type sourceReader struct{ Source }

// Read implements io.Reader.
func (r sourceReader) Read(p []byte) (int, error) { return r.ReadBody(p) }

// Read implements io.Reader.
func (u *Upload) Read(p []byte) (int, error) {
	if len(u.first) > 0 {
		n := copy(p, u.first)
		u.first = u.first[n:]
		return n, nil
	}
	if u.ahead != nil {
		n, err := u.ahead.Read(p)
		switch {
		case n > 0 || err != nil:
			return n, err
		case u.whole:
			return 0, io.EOF
		}
	}
	n, err := u.source.ReadBody(p)
	if err != nil && err != io.EOF {
		u.Err = err
	}
	return n, err
}

// Release gives up what was read ahead: the body was sent, or never will be.
func (u *Upload) Release() {
	if u.ahead != nil {
		u.ahead.Close()
		u.ahead = nil
	}
}
