package server

import (
	"context"
	"log/slog"
	"net"
	"testing"

	"sluice/internal/testkit"
)

func TestDrain_AnswersWhatWasAccepted(t *testing.T) {
	eachEngine(t, func(t *testing.T, e engine) {
		begun, open := make(chan struct{}), make(chan struct{})
		h := &handler{handle: func(x *served) {
			if x.Conn.StepAside(); string(x.Request.Path) == "/busy" {
				begun <- struct{}{}
				<-open
			}
			answerText(x, 200, "")
		}}
		s, addr := e.start(t, h, long)
		silent, idle, busy := connect(t, addr), connect(t, addr), connect(t, addr)
		idle.send(get())
		idle.expect(200, "")
		busy.send(line("GET /busy HTTP/1.1"))
		<-begun
		testkit.Eventually(t, "the others are idle", func() bool { return s.inPhase(phaseIdle) == 2 })
		drained := make(chan int)
		go func() { drained <- s.Drain(context.Background()) }()
		for _, c := range []*client{silent, idle} {
			if rest := c.rest(); rest != "" {
				t.Errorf("an idle connection reads %q", rest)
			}
		}
		close(open)
		if resp := busy.expect(200, ""); !resp.Close {
			t.Error("the busy connection goes on")
		}
		busy.Close()
		if cut := <-drained; cut != 0 {
			t.Errorf("%d connections were cut", cut)
		}
	})
}

func TestDrain_CutsWhatOutlastsItsContext(t *testing.T) {
	eachEngine(t, func(t *testing.T, e engine) {
		begun, open := make(chan struct{}), make(chan struct{})
		h := &handler{handle: func(x *served) {
			x.Conn.StepAside()
			close(begun)
			<-open
			answerText(x, 200, "")
		}}
		s, addr := e.start(t, h, long)
		connect(t, addr).send(get())
		<-begun
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if cut := s.Drain(ctx); cut != 1 {
			t.Errorf("cut %d connections, want 1", cut)
		}
		close(open)
		testkit.Eventually(t, "it is closed", func() bool { return h.closed.Load() == 1 })
	})
}

// A signal to end may come before the listeners are served; then none of them may outlive it.
func TestServer_ServeAfterADrainEndsAtOnce(t *testing.T) {
	eachEngine(t, func(t *testing.T, e engine) {
		s := NewServer(&handler{}, Limits{}, Options{Logger: slog.New(slog.DiscardHandler)})
		ln, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		if cut := s.Drain(t.Context()); cut != 0 {
			t.Errorf("%d connections were cut, and there were none", cut)
		}
		if err := s.Serve(e(ln)); err != nil { // blocks where the drain has no effect
			t.Error(err)
		}
		if c, err := net.Dial("tcp", ln.Addr().String()); err == nil {
			c.Close()
			t.Error("the listener is still open")
		}
	})
}

func TestServer_AnnounceShutdownEndsEachConnectionWithItsNextAnswer(t *testing.T) {
	eachEngine(t, func(t *testing.T, e engine) {
		s, addr := e.start(t, &handler{}, long)
		c := connect(t, addr)
		c.send(get())
		if resp := c.expect(200, "GET /a "); resp.Close {
			t.Error("closed before it was announced")
		}
		s.AnnounceShutdown()
		c.send(get())
		if resp := c.expect(200, "GET /a "); !resp.Close {
			t.Error("the connection goes on")
		}
		c.rest()
	})
}
