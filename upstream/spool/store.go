// Package spool keeps parts of bodies that their readers have not taken yet: in a bounded memory first, and past it in
// one temporary file, which has no name and goes with the Store.
//
// It promises that what is written is read in the same order, and that memory and file stay within their bounds. It
// does not wait: a writer that finds no room hears so.
package spool

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"sync/atomic"
)

const (
	memoryBlock = 16 << 10 // bytes
	fileBlock   = 64 << 10 // bytes
	ownMemory   = 16       // blocks of memory that one body has at most: 256 KiB
	ownShare    = 8        // one body has at most this part, one in so many, of the file
)

// ErrFull says that neither memory nor file has room.
var ErrFull = errors.New("spool: no room")

// ErrWrite is in each error of the file: the sender of the bytes is not at fault.
var ErrWrite = errors.New("spool: cannot be written")

// Options bound a Store.
type Options struct {
	Memory int64        // bytes
	File   int64        // bytes; 0 = no file is used
	Dir    string       // where the file is made; "" = the system's folder for temporary files
	Log    *slog.Logger // of faults of the file; nil = none
}

// Store is the memory and the file that all bodies share. It is safe for concurrent use.
type Store struct {
	options Options
	left    atomic.Int64 // bytes of memory that nothing has
	blocks  sync.Pool    // of *[memoryBlock]byte
	pieces  sync.Pool    // of *[fileBlock]byte, through which the file is written

	mu    sync.Mutex
	file  *os.File // nil = none is open
	fault error    // why it cannot be used, as the log says; nil = it can
	free  []int64  // blocks of the file, before next, that hold nothing
	next  int64    // the first block that was never used since the file was empty
	used  int64    // blocks in use
}

// New makes a Store. It opens no file before one is needed.
func New(o Options) *Store {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	s := &Store{options: o}
	s.left.Store(o.Memory)
	s.blocks.New = func() any { return new([memoryBlock]byte) }
	s.pieces.New = func() any { return new([fileBlock]byte) }
	return s
}

// Check opens the file, so that a folder that cannot be written to is found at once. The log says so.
func (s *Store) Check() error {
	if s.options.File < fileBlock {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	err := s.open()
	if err != nil {
		s.fail(err)
	}
	return err
}

// Reserve takes n bytes of the memory, for a body that is kept elsewhere; false = there are not so many.
func (s *Store) Reserve(n int64) bool {
	for left := s.left.Load(); left >= n; left = s.left.Load() {
		if s.left.CompareAndSwap(left, left-n) {
			return true
		}
	}
	return false
}

// Release gives back n bytes of Reserve.
func (s *Store) Release(n int64) { s.left.Add(n) }

// Most is how many bytes one body can have, if no other one needs room.
func (s *Store) Most() int64 {
	return min(ownMemory*memoryBlock, s.options.Memory) + s.options.File/ownShare
}

// Used is how many bytes of memory and of the file are in use.
func (s *Store) Used() (memory, file int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.options.Memory - s.left.Load(), s.used * fileBlock
}

// open makes the file, where there is none. mu is held.
func (s *Store) open() error {
	if s.file != nil {
		return nil
	}
	f, err := os.CreateTemp(s.options.Dir, "sluice-spool-*")
	if err != nil {
		return fmt.Errorf("open spool: %w", err)
	}
	if err := os.Remove(f.Name()); err != nil {
		_ = f.Close()
		return fmt.Errorf("open spool: %w", err)
	}
	s.file = f
	return nil
}

// block takes a block of the file; false = none is left, or there is no file.
func (s *Store) block() (at int64, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.used >= s.options.File/fileBlock || s.fault != nil {
		return 0, false
	}
	if err := s.open(); err != nil {
		s.fail(err)
		return 0, false
	}
	s.used++
	if n := len(s.free) - 1; n >= 0 {
		at, s.free = s.free[n], s.free[:n]
		return at, true
	}
	s.next++
	return s.next - 1, true
}

// release gives back blocks of the file. An empty file gives its room back to the system.
func (s *Store) release(blocks []int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.used -= int64(len(blocks))
	s.free = append(s.free, blocks...)
	if s.used == 0 && s.next > 0 {
		s.free, s.next, s.fault = nil, 0, nil // a disk that was full may have room again
		if s.file != nil {
			_ = s.file.Truncate(0)
		}
	}
}

// fail says once that the file cannot be used; bodies have memory alone from then on. mu is held.
func (s *Store) fail(err error) {
	if s.fault == nil {
		s.options.Log.Error("the spool file cannot be used; slow clients hold connections to the upstream",
			"dir", s.options.Dir, "err", err)
	}
	s.fault = err
}

// Fault is why the file cannot be used; nil = it can, as far as is known.
func (s *Store) Fault() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.fault
}

func (s *Store) write(p []byte, at int64) error {
	_, err := s.opened().WriteAt(p, at)
	if err != nil {
		s.mu.Lock()
		s.fail(err)
		s.mu.Unlock()
		return fmt.Errorf("%w: %w", ErrWrite, err)
	}
	return nil
}

func (s *Store) read(p []byte, at int64) error {
	_, err := s.opened().ReadAt(p, at)
	return err
}

// opened is the file, of which a block is in use.
func (s *Store) opened() *os.File {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.file
}
