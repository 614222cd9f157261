package load

import (
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"
)

// A crowd asks on connections in turn, of which few have a request under way, and leaves them open for the next.
func TestCrowd_SharesConnectionsOfWhichFewAreBusy(t *testing.T) {
	var mu sync.Mutex
	opened, inside, most, asked := 0, 0, 0, map[string]int{}
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		inside++
		most = max(most, inside)
		asked[r.RemoteAddr]++
		mu.Unlock()
		if strings.HasSuffix(r.URL.Path, "9") {
			w.WriteHeader(http.StatusTeapot)
		}
		mu.Lock()
		inside--
		mu.Unlock()
	}))
	s.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			mu.Lock()
			opened++
			mu.Unlock()
		}
	}
	s.Start()
	defer s.Close()
	over := NewConnections(12, To(s.Listener.Addr().String()))
	defer over.Close()
	if err := over.Open(t.Context()); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		c, err := New(Plan{Over: over, Busy: 3, Arrivals: make([]time.Duration, 60), Tries: 1, GiveUpAfter: time.Minute,
			Request: func(dst []byte, shopper int) []byte {
				return fmt.Appendf(dst, "GET /%d HTTP/1.1\r\nHost: shop\r\n\r\n", shopper)
			}})
		if err != nil {
			t.Fatal(err)
		}
		c.Run(t.Context(), time.Now())
		if n := c.Counts(); n.Requests != 60 || n.Status[200] != 54 || n.Status[http.StatusTeapot] != 6 || n.Broken != 0 {
			t.Errorf("%+v", n)
		}
	}
	mu.Lock()
	defer mu.Unlock()
	if opened != 12 || most > 3 {
		t.Errorf("%d connections were opened, at most %d were busy", opened, most)
	}
	for from, n := range asked {
		if n > 120/3 {
			t.Errorf("%s was asked %d times", from, n)
		}
	}
}

func TestConnections_ThatCannotBeOpenedAreAnError(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l.Close()
	if NewConnections(3, To(l.Addr().String())).Open(t.Context()) == nil {
		t.Error("they are open")
	}
}
