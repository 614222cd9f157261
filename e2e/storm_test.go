package e2e

import (
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"sluice/internal/redistest"
	"sluice/internal/testkit"
)

// market is a shop that sells several units at once, cancels orders, and answers as unreliably as it can.
type market struct {
	url string

	mu     sync.Mutex
	units  map[string]int // by serial, of orders that stand
	user   map[string]string
	came   map[string]int
	denied map[string]bool
	faults []string
}

func openMarket(t *testing.T) *market {
	m := &market{units: map[string]int{}, user: map[string]string{}, came: map[string]int{}, denied: map[string]bool{}}
	doors := http.NewServeMux()
	doors.HandleFunc("POST /api/seckill/{sku}/order", m.order)
	doors.HandleFunc("GET /orders/by-serial/{serial}", m.tell)
	server := httptest.NewServer(doors)
	t.Cleanup(server.Close)
	t.Cleanup(server.CloseClientConnections)
	m.url = server.URL
	return m
}

// order books, or not, and says so, or something else.
func (m *market) order(w http.ResponseWriter, r *http.Request) {
	serial, units := r.Header.Get("Idempotency-Key"), 0
	_, _ = fmt.Sscan(r.Header.Get("Sluice-Quantity"), &units)
	user, _ := r.Cookie("uid")
	luck := rand.IntN(100)
	m.mu.Lock()
	m.came[serial]++
	if m.came[serial] > 1 {
		m.faults = append(m.faults, "sent again: "+serial)
	}
	ok := !m.denied[serial] && luck >= 10
	if ok {
		m.units[serial], m.user[serial] = units, user.Value
	}
	m.mu.Unlock()
	switch {
	case !ok:
		w.WriteHeader(http.StatusConflict)
	case luck < 13:
		w.WriteHeader(http.StatusInternalServerError)
	case luck < 16: // an answer that is cut
		w.Header().Set("Content-Length", "100")
		_, _ = io.WriteString(w, "order")
		panic(http.ErrAbortHandler)
	case luck < 18:
		panic(http.ErrAbortHandler)
	case luck < 20:
		time.Sleep(700 * time.Millisecond) // later than the gate waits
	case luck < 30: // in chunks
		for range 20 {
			_, _ = io.WriteString(w, strings.Repeat("ordered ", 50))
			w.(http.Flusher).Flush()
		}
	case luck < 32:
		_, _ = io.WriteString(w, strings.Repeat("ordered ", 100_000))
	default:
		time.Sleep(time.Duration(rand.IntN(10)) * time.Millisecond) // the shop's work
		_, _ = io.WriteString(w, "ordered")
	}
}

// tell is the status URL: slow, broken, or right; what it denies never comes into being.
func (m *market) tell(w http.ResponseWriter, r *http.Request) {
	switch rand.IntN(5) {
	case 0:
		w.WriteHeader(http.StatusBadGateway)
		return
	case 1:
		time.Sleep(100 * time.Millisecond) // a slow status URL
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, ok := m.units[r.PathValue("serial")]; !ok {
		m.denied[r.PathValue("serial")] = true
		w.WriteHeader(http.StatusNotFound)
	}
}

// sold counts the units of orders that stand, and finds users who have more than so many.
func (m *market) sold(most int) (n int, faults []string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	users := map[string]int{}
	for serial, units := range m.units {
		n += units
		users[m.user[serial]] += units
	}
	for user, units := range users {
		if units > most {
			m.faults = append(m.faults, fmt.Sprintf("user %s has %d units", user, units))
		}
	}
	return n, m.faults
}

// cancel takes back an order that stands; "" = there is none.
func (m *market) cancel(confirmed func(serial string) bool) {
	m.mu.Lock()
	var serial string
	for s := range m.units {
		serial = s
		break
	}
	m.mu.Unlock()
	if serial == "" || !confirmed(serial) {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.units, serial)
	delete(m.user, serial)
	m.denied[serial] = true
}

const severalRoutes = `
[[route]]
name = "order"
match = "POST /api/seckill/{sku}/order"
gate = "reserve"
sku = "$path_sku"
user = "$cookie_uid"
quantity = "$arg_q"

[[route]]
name = "everything-else"
match = "/"
gate = "pass"
`

// several asks for units with no key or one; it returns what was heard.
func several(client *http.Client, front, user, key string, units int) (status int, reason string) {
	req, _ := http.NewRequest("POST", fmt.Sprintf("http://%s/api/seckill/1001/order?q=%d", front, units), nil)
	req.Header.Set("Cookie", "uid="+user)
	if key != "" {
		req.Header.Set("Idempotency-Key", key)
	}
	resp, err := client.Do(req)
	if err != nil {
		return 0, err.Error()
	}
	_, _ = io.Copy(io.Discard, resp.Body)
	resp.Body.Close()
	return resp.StatusCode, resp.Header.Get("X-Sluice-Reason")
}

// operate posts to a control API, another one and again until one of them knows, and reports whether it was done.
func operate(admins []string, path, body string) bool {
	for n := rand.IntN(2); ; n++ {
		resp, err := http.Post("http://"+admins[n%2]+"/api/v1"+path, "application/json", strings.NewReader(body))
		if err == nil {
			resp.Body.Close()
			if resp.StatusCode < 500 {
				return resp.StatusCode == http.StatusOK
			}
		}
		time.Sleep(5 * time.Millisecond) // between two tries
	}
}

// Shoppers with keys and without, for one to three units; operators who pause, resume, restock, refund and reload; a
// Redis that hangs and dies twice in a row, an instance that dies, and a shop that does whatever shops do.
func TestReserve_LedgerAndShopAgreeAfterAStorm(t *testing.T) {
	testkit.Nightly(t, "it runs long")
	r, shop := redistest.Start(t, lasting...), openMarket(t)
	settings := []string{"upstream.targets = " + quoted(shop.url), `upstream.response_header_timeout = "500ms"
stock.reserve.on_not_found = "cancel_then_release"
stock.reserve.reservation_ttl = "1s"
stock.reserve.max_per_user = 3`,
		"stock.reserve.status_url = " + fmt.Sprintf("%q", shop.url+"/orders/by-serial/{serial}"),
		usualRedisAt(r), boundless}
	addresses, second := fixed(t)
	one := gate(t, append(settings[:len(settings):len(settings)], severalRoutes)...)
	two := gate(t, append(append(settings[:len(settings):len(settings)], addresses), severalRoutes)...)
	ok(t, "stock", "set", "--config", one.file, "1001", "400")

	stop := make(chan struct{})
	var all, crew sync.WaitGroup
	var lies journal
	fronts, admins := []string{one.front, second}, []string{one.admin, two.admin}
	heard := sync.Map{}
	for u := range 300 {
		all.Go(func() {
			client := &http.Client{Transport: &http.Transport{}, Timeout: long}
			defer client.CloseIdleConnections()
			user := strconv.Itoa(u)
			mine := map[string]int{} // keys that were answered 200
			for n := 0; ; n++ {
				select {
				case <-stop:
					return
				case <-time.After(time.Duration(rand.IntN(60)) * time.Millisecond):
				}
				key, units := "", 1+rand.IntN(3)
				if u%2 == 0 {
					key = fmt.Sprintf("k-%d-%d", u, n/3) // each thrice
					units = 1 + u%3
				}
				status, reason := several(client, fronts[rand.IntN(2)], user, key, units)
				c, _ := heard.LoadOrStore(fmt.Sprint(status, " ", reason), new(atomic.Int64))
				c.(*atomic.Int64).Add(1)
				if status == 200 && reason == "" {
					mine[key] = units
				}
				if _, won := mine[key]; won && key != "" && (reason == "sold_out" || reason == "not_started") {
					fmt.Fprintf(&lies, "%s of %s: %s\n", key, user, reason)
				}
			}
		})
	}
	crew.Go(func() { // operators
		for n := 0; ; n++ {
			select {
			case <-stop:
				return
			case <-time.After(30 * time.Millisecond):
			}
			switch n % 7 {
			case 0:
				operate(admins, "/stock/1001", `{"state": "paused"}`)
				time.Sleep(20 * time.Millisecond) // a short pause of the sale
				operate(admins, "/stock/1001", `{"state": "on"}`)
			case 1:
				operate(admins, "/stock/1001", `{"add": 2}`)
			case 2:
				operate(admins, "/stock/1001", `{"add": -1}`)
			case 3:
				r.Client.ScriptFlush(t.Context())
			case 4:
				_ = one.process.Process.Signal(syscall.SIGHUP)
			default:
				shop.cancel(func(serial string) bool {
					return operate(admins, "/reservations/"+serial+"/refund?sku=1001", "")
				})
			}
		}
	})
	rest := time.Sleep // the faults are spread over the sale
	rest(2 * time.Second)
	r.Pause()
	rest(600 * time.Millisecond)
	r.Resume()
	rest(time.Second)
	for range 2 {
		r.Kill()
		r.Restart()
		rest(100 * time.Millisecond)
	}
	rest(3 * time.Second)
	two.die()
	rest(500 * time.Millisecond)
	two = two.again(t)
	rest(3 * time.Second)
	close(stop)
	all.Wait()
	crew.Wait()
	heard.Range(func(k, n any) bool { t.Logf("%v: %d", k, n.(*atomic.Int64).Load()); return true })
	// leases of the dead one last 60 s
	for end := time.Now().Add(3 * long); ledgerOf(t, r, "1001").held > 0 && time.Now().Before(end); {
		time.Sleep(pause) // the pace of the storm
	}
	a := ledgerOf(t, r, "1001")
	sold, faults := shop.sold(3)
	t.Logf("ledger %+v, shop %d", a, sold)
	if a.held > 0 || a.sold != sold || a.sold > a.total || len(faults) > 0 || lies.String() != "" {
		t.Errorf("ledger %+v, %d units at the shop; %q; lies: %s", a, sold, faults, lies.String())
		for serial, units := range shop.units {
			if v := r.Client.HGet(t.Context(), "sluice:shop:{1001}:r", serial).Val(); !strings.HasPrefix(v,
				fmt.Sprintf("C|%d|", units)) {
				t.Errorf("%s of %d units at the shop is %q", serial, units, v)
			}
		}
	}
	if s := r.Client.HGet(t.Context(), "sluice:shop:{1001}:s", "state").Val(); s != "on" {
		t.Errorf("it is %s", s)
	}
	for _, g := range []*running{one, two} {
		for _, l := range strings.Split(g.log.String(), "\n") {
			if strings.Contains(l, "invariant") || strings.Contains(l, "does not agree") || strings.Contains(l, "ledger lost") ||
				strings.Contains(l, "panic") {
				t.Errorf("the log says: %s", l)
			}
		}
		_, text := g.peek("/metrics")
		for _, l := range strings.Split(text, "\n") {
			if strings.HasPrefix(l, "sluice_reservations_unknown") || strings.HasPrefix(l, "sluice_settle_queue") ||
				strings.HasPrefix(l, "go_goroutines") {
				t.Log(l)
			}
		}
	}
}
