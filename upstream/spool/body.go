package spool

import (
	"io"
	"sync"
)

// Body is one body, or the part of it that was written and not read. One goroutine may write while another one reads,
// and closes it.
type Body struct {
	store *Store

	mu      sync.Mutex
	memory  []part  // comes before what is in the file
	blocks  []int64 // of the file
	from    int64   // in blocks, the next byte to read
	to      int64   // in blocks, behind the last byte
	filling bool
	closed  bool
}

// part is one block of memory.
type part struct {
	b        *[memoryBlock]byte
	from, to int
}

// Body returns an empty body.
func (s *Store) Body() *Body { return &Body{store: s} }

// Fill reads from r once, and appends what came. The error is ErrFull, where nothing was read as there is no room, or
// that of r, or a fault of the file, by which what was read is lost.
func (b *Body) Fill(r io.Reader) (n int, err error) {
	room, at := b.room()
	switch {
	case room != nil:
		n, err = r.Read(room)
		b.mu.Lock()
		defer b.mu.Unlock()
		b.memory[len(b.memory)-1].to += n
	case at >= 0:
		n, err = b.fillFile(r, at)
		b.mu.Lock()
		defer b.mu.Unlock()
		b.to += int64(n)
	default:
		return 0, ErrFull
	}
	if b.filling = false; b.closed {
		b.free()
	}
	return n, err
}

// fillFile reads from r once, and writes what came at a place of the file.
func (b *Body) fillFile(r io.Reader, at int64) (n int, err error) {
	piece := b.store.pieces.Get().(*[fileBlock]byte)
	defer b.store.pieces.Put(piece)
	n, err = r.Read(piece[:fileBlock-at%fileBlock])
	if n > 0 {
		if fault := b.store.write(piece[:n], at); fault != nil {
			return 0, fault
		}
	}
	return n, err
}

// room is where the next bytes go: into memory, or to a place of the file; nil and -1 = there is no room.
func (b *Body) room() (memory []byte, at int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return nil, -1
	}
	if b.from == b.to && len(b.blocks) > 0 {
		b.store.release(b.blocks)
		b.blocks, b.from, b.to = nil, 0, 0
	}
	if len(b.blocks) == 0 {
		n := len(b.memory)
		if n > 0 && b.memory[n-1].to < memoryBlock {
			b.filling = true
			return b.memory[n-1].b[b.memory[n-1].to:], 0
		}
		if n < ownMemory && b.store.Reserve(memoryBlock) {
			b.memory = append(b.memory, part{b: b.store.blocks.Get().(*[memoryBlock]byte)})
			b.filling = true
			return b.memory[n].b[:], 0
		}
	}
	if b.to == int64(len(b.blocks))*fileBlock {
		if int64(len(b.blocks)) >= max(1, b.store.options.File/fileBlock/ownShare) {
			return nil, -1
		}
		block, ok := b.store.block()
		if !ok {
			return nil, -1
		}
		b.blocks = append(b.blocks, block)
	}
	b.filling = true
	return nil, b.blocks[b.to/fileBlock]*fileBlock + b.to%fileBlock
}

// Read returns what was written, and 0 bytes without an error where there is nothing. It does not wait.
func (b *Body) Read(p []byte) (n int, err error) {
	b.mu.Lock()
	if b.closed {
		b.mu.Unlock()
		return 0, io.ErrClosedPipe
	}
	for n < len(p) && len(b.memory) > 0 {
		k := &b.memory[0]
		m := copy(p[n:], k.b[k.from:k.to])
		k.from += m
		n += m
		if k.from < k.to || len(b.memory) == 1 && b.filling && len(b.blocks) == 0 {
			break // p is full, or the writer is at work in it
		}
		b.dropMemory()
	}
	if n > 0 || b.from == b.to {
		b.mu.Unlock()
		return n, nil
	}
	at := b.blocks[b.from/fileBlock]*fileBlock + b.from%fileBlock
	p = p[:min(int64(len(p)), b.to-b.from, fileBlock-b.from%fileBlock)]
	b.mu.Unlock()
	if err := b.store.read(p, at); err != nil {
		return 0, err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.from += int64(len(p)); b.from >= fileBlock && len(b.blocks) > 0 {
		b.store.release(b.blocks[:1])
		b.blocks, b.from, b.to = b.blocks[1:], b.from-fileBlock, b.to-fileBlock
	}
	return len(p), nil
}

// dropMemory gives back the first block of memory. mu is held.
func (b *Body) dropMemory() {
	b.store.blocks.Put(b.memory[0].b)
	b.store.Release(memoryBlock)
	b.memory = b.memory[1:]
}

// Close gives up what was not read.
func (b *Body) Close() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return
	}
	if b.closed = true; !b.filling {
		b.free()
	}
}

func (b *Body) free() {
	for len(b.memory) > 0 {
		b.dropMemory()
	}
	if len(b.blocks) > 0 {
		b.store.release(b.blocks)
		b.blocks, b.from, b.to = nil, 0, 0
	}
}
