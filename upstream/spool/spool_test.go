package spool

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"path/filepath"
	"sync"
	"testing"
)

// isEmpty reports that all that was written has been read.
func isEmpty(b *Body) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.from == b.to && (len(b.memory) == 0 || len(b.memory) == 1 && b.memory[0].from == b.memory[0].to)
}

// A body is read as it was written, whatever the sizes of writes and reads; memory and file stay within their bounds.
func TestBody_IsReadAsItWasWritten(t *testing.T) {
	const memory, file = 8 * memoryBlock, 64 * fileBlock
	s := New(Options{Memory: memory, File: file, Dir: t.TempDir()})
	var all sync.WaitGroup
	for n := range 8 {
		all.Go(func() {
			random := rand.New(rand.NewPCG(uint64(n), 1))
			want := make([]byte, 1<<20+random.IntN(1<<20))
			for i := range want {
				want[i] = byte(random.Uint32())
			}
			b := s.Body()
			defer b.Close()
			written := make(chan struct{}, 1)
			go func() {
				defer close(written)
				for r := bytes.NewReader(want); r.Len() > 0; {
					_, err := b.Fill(io.LimitReader(r, 1+random.Int64N(100<<10)))
					if err != nil && err != ErrFull {
						t.Error(err)
						return
					}
					select {
					case written <- struct{}{}:
					default:
					}
				}
			}()
			var got bytes.Buffer
			piece := make([]byte, 50<<10)
			for more := true; more || !isEmpty(b); {
				n, err := b.Read(piece[:1+rand.IntN(len(piece))])
				if err != nil {
					t.Error(err)
					return
				}
				if got.Write(piece[:n]); n == 0 {
					_, more = <-written
				}
				if m, f := s.Used(); m > memory || f > file {
					t.Errorf("%d bytes of memory, %d of the file", m, f)
				}
			}
			if !bytes.Equal(got.Bytes(), want) {
				t.Errorf("%d bytes were read, not the %d that were written", got.Len(), len(want))
			}
		})
	}
	all.Wait()
	if m, f := s.Used(); m != 0 || f != 0 {
		t.Errorf("%d bytes of memory and %d of the file are in use", m, f)
	}
}

func TestBody_WithoutRoomIsFull(t *testing.T) {
	for name, c := range map[string]struct {
		Options
		most int
	}{
		"no room at all": {Options{}, 0},
		"memory":         {Options{Memory: 2 * memoryBlock}, 2 * memoryBlock},
		"its share":      {Options{Memory: memoryBlock, File: 16 * fileBlock}, memoryBlock + 2*fileBlock},
		"no folder":      {Options{Memory: memoryBlock, File: 1 << 30, Dir: filepath.Join(t.TempDir(), "none")}, memoryBlock},
	} {
		c.Dir = map[bool]string{true: c.Dir, false: t.TempDir()}[c.Dir != ""]
		s := New(c.Options)
		b := s.Body()
		n := 0
		for err := error(nil); err == nil; {
			var m int
			m, err = b.Fill(bytes.NewReader(make([]byte, 1000)))
			if n += m; err != nil && !errors.Is(err, ErrFull) {
				t.Errorf("%s: %v", name, err)
			}
		}
		if n != c.most {
			t.Errorf("%s: %d bytes fit, want %d", name, n, c.most)
		}
		b.Close()
		b.Close()
		if m, f := s.Used(); m != 0 || f != 0 {
			t.Errorf("%s: %d and %d are in use", name, m, f)
		}
		if _, err := b.Read(make([]byte, 1)); err != io.ErrClosedPipe {
			t.Errorf("%s: read after Close: %v", name, err)
		}
	}
}

// A file that holds nothing takes no room of the disk.
func TestStore_EmptyFileIsTruncated(t *testing.T) {
	s := New(Options{File: 16 * fileBlock, Dir: t.TempDir()})
	b := s.Body()
	if _, err := b.Fill(bytes.NewReader(make([]byte, 1000))); err != nil {
		t.Fatal(err)
	}
	if st, err := s.file.Stat(); err != nil || st.Size() != 1000 {
		t.Errorf("%v, %v", st, err)
	}
	b.Close()
	if st, err := s.file.Stat(); err != nil || st.Size() != 0 {
		t.Errorf("%d bytes, %v", st.Size(), err)
	}
}
