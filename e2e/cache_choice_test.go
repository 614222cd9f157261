package e2e

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"
)

// loadRaw sends a request of the test's own bytes and returns the body of the answer.
func (g *running) loadRaw(t *testing.T, head string) string {
	t.Helper()
	c, err := net.Dial("tcp", g.front)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(long))
	fmt.Fprintf(c, "%s\r\n\r\n", strings.ReplaceAll(head, "\n", "\r\n"))
	resp, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, _ := io.ReadAll(resp.Body)
	return string(body)
}

// A field that comes twice, or in a spelling that CGI takes for it, chooses a page in the shop: it chooses one in the
// cache too.
func TestCache_AmbiguousFieldChangesNoPageOfOthers(t *testing.T) {
	t.Parallel()
	// folded is the first value of a field in any spelling, as a CGI or WSGI shop may see it.
	folded := func(r *http.Request, name string) string {
		if v := r.Header[strings.ReplaceAll(name, "-l", "_l")]; len(v) > 0 {
			return v[0]
		}
		return r.Header.Get(name)
	}
	shop := open(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Vary", "User-Agent, Accept-Language")
		fmt.Fprintf(w, "%s in %s", r.Header.Get("User-Agent"), folded(r, "Accept-language"))
	})
	g := gate(t, shop.setting(), unlimited, cachedRoutes)
	const victim = "GET %s HTTP/1.1\nHost: shop\nUser-Agent: desktop\nAccept-Language: zh"
	for path, attack := range map[string]string{
		"/twice":  "GET %s HTTP/1.1\nHost: shop\nUser-Agent: evil\nUser-Agent: desktop\nAccept-Language: zh",
		"/folded": "GET %s HTTP/1.1\nHost: shop\nUser-Agent: desktop\nAccept-Language: zh\nAccept_Language: evil",
	} {
		g.loadRaw(t, fmt.Sprintf(attack, "/first")) // by now it is known what the pages vary by
		g.loadRaw(t, fmt.Sprintf(attack, path))
		if body := g.loadRaw(t, fmt.Sprintf(victim, path)); body != "desktop in zh" {
			t.Errorf("%s: another has made the page %q", path, body)
		}
	}
}

// Who has waited for a page in vain, since it turned out to vary, is not sent after it at once with all others.
func TestCache_FetchesEachVariantOnce(t *testing.T) {
	t.Parallel()
	shop := open(t, func(w http.ResponseWriter, r *http.Request) {
		time.Sleep(300 * time.Millisecond) // the crowd comes meanwhile
		w.Header().Set("Vary", "Accept-Language")
		fmt.Fprintf(w, "in %s", r.Header.Get("Accept-Language"))
	})
	g := gate(t, shop.setting(), unlimited, cachedRoutes)
	var crowd sync.WaitGroup
	for i := range 60 {
		crowd.Go(func() {
			language := fmt.Sprint("l", i%3)
			if body := g.ask("GET", "/p", "Accept-Language: "+language).body; body != "in "+language {
				t.Errorf("%q", body)
			}
		})
	}
	crowd.Wait()
	if n := shop.arrivals.Load(); n != 3 {
		t.Errorf("%d requests came to the shop for 3 variants", n)
	}
}
