package e2e

import (
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"

	"sluice/internal/redistest"
)

// What one session cookie can be written like, and shops read as the same: PHP and Express undo escapes, Python's and
// Werkzeug's readers undo octal ones within quotes, or end a value at a space.
func TestIdentity_OneCookieIsOneUserHoweverItIsWritten(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	placed := map[string]int{}
	shop := open(t, func(w http.ResponseWriter, r *http.Request) {
		_, v, _ := strings.Cut(r.Header.Get("Cookie"), "uid=")
		v = strings.Trim(v, `"`)
		v = strings.ReplaceAll(v, `\067`, "7")
		v, _, _ = strings.Cut(v, " ")
		v, _, _ = strings.Cut(v, ",")
		if plain, err := url.QueryUnescape(v); err == nil {
			v = plain
		}
		mu.Lock()
		defer mu.Unlock()
		placed[v]++
	})
	g := reserves(t, redistest.Start(t), 100, shop.setting())
	for _, user := range []string{"s-7", "s-%37", "%73-7", "%73%2D%37", "s%2d7", `"s-7"`, `"s-\067"`, "s-7 x=1",
		"s-7\tx=1", "s-7,x=1", `"s-7" x=1`, `s-7"`} {
		b := &buyer{user: user}
		b.buy(g.front)
		b.leave()
	}
	mu.Lock()
	defer mu.Unlock()
	if placed["s-7"] != 1 {
		t.Errorf("the shop got %d orders of one person: %v", placed["s-7"], placed)
	}
}
