package http1

// buffer keeps bytes that were read from the socket and not handed on: b[from:to].
type buffer struct {
	b        []byte
	from, to int
}

// acquire takes a buffer that holds at least n bytes, n being at most g.large.
func (g *Guard) acquire(n int) *buffer {
	pool, size := &g.small, smallBuffer
	if n > smallBuffer {
		pool, size = &g.big, g.large
	}
	if k, ok := pool.Get().(*buffer); ok {
		return k
	}
	return &buffer{b: make([]byte, size)}
}

// release gives k back.
func (g *Guard) release(k *buffer) {
	k.from, k.to = 0, 0
	if len(k.b) == smallBuffer {
		g.small.Put(k)
	} else {
		g.big.Put(k)
	}
}

// keep copies b, at most g.large bytes, aside.
func (r *Reader) keep(b []byte) {
	if len(b) == 0 {
		return
	}
	r.kept = r.guard.acquire(len(b))
	r.kept.to = copy(r.kept.b, b)
}

// forget drops the kept bytes.
func (r *Reader) forget() {
	if r.kept != nil {
		r.guard.release(r.kept)
		r.kept = nil
	}
}

// drop forgets the first n of the kept bytes.
func (r *Reader) drop(n int) {
	r.kept.from += n
	if r.kept.from == r.kept.to {
		r.forget()
	}
}
