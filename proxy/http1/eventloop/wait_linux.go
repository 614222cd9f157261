package eventloop

import (
	"net"
	"os"
	"time"
)

// late reports that d's deadline has passed.
func (s *Socket) late(d *side) error {
	s.mu.Lock()
	at := d.deadline
	s.mu.Unlock()
	if !at.IsZero() && !time.Now().Before(at) {
		return os.ErrDeadlineExceeded
	}
	return nil
}

// await waits until something happens on d.
func (s *Socket) await(d *side) error {
	s.StepAside()
	if err := s.hold(); err != nil {
		return err
	}
	s.mu.Lock()
	if d.waiter == nil {
		d.waiter = make(chan struct{}, 1)
	}
	waiter := d.waiter
	s.mu.Unlock()
	for {
		s.mu.Lock()
		at, closed, news := d.deadline, s.closed, d.news
		s.mu.Unlock()
		switch {
		case closed:
			return net.ErrClosed
		case news:
			return nil
		case at.IsZero():
			<-waiter
			continue
		}
		left := time.Until(at)
		if left <= 0 {
			return os.ErrDeadlineExceeded
		}
		timer := time.NewTimer(left)
		select {
		case <-waiter:
			timer.Stop()
		case <-timer.C:
		}
	}
}

// SetDeadline implements net.Conn.
func (s *Socket) SetDeadline(t time.Time) error {
	if err := s.SetReadDeadline(t); err != nil {
		return err
	}
	return s.SetWriteDeadline(t)
}

// SetReadDeadline implements net.Conn. It does not end a rest.
func (s *Socket) SetReadDeadline(t time.Time) error { return s.setDeadline(&s.in, t) }

// SetWriteDeadline implements net.Conn: a write that does not have to wait is never late.
func (s *Socket) SetWriteDeadline(t time.Time) error { return s.setDeadline(&s.out, t) }

func (s *Socket) setDeadline(d *side, t time.Time) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return net.ErrClosed
	}
	d.deadline = t
	d.rouse()
	return nil
}
