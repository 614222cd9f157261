package e2e

import (
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"sluice/internal/testkit"
)

// mishap is what the shop does to an order that it has booked. Asked later, it tells the truth.
func (c *chaos) mishap(n int, w http.ResponseWriter, r *http.Request) bool {
	c.mu.Lock()
	c.orders[r.Header.Get("Idempotency-Key")] = r.PathValue("sku")
	c.mu.Unlock()
	dice := c.dice(1 << 32 * uint64(n))
	if c.honest.Load() {
		return false
	}
	switch what := dice.IntN(100); {
	case what < 5:
		c.count("orders answered 500 after they were booked", 1)
		http.Error(w, "after commit", http.StatusInternalServerError)
	case what < 8:
		c.count("orders that the shop hung on", 1)
		select {
		case <-r.Context().Done():
		case <-time.After(5 * time.Second):
		}
	case what < 12:
		c.count("orders answered by a reset", 1)
		if conn, _, err := http.NewResponseController(w).Hijack(); err == nil {
			_ = conn.(*net.TCPConn).SetLinger(0)
			conn.Close()
		}
	case what < 30:
		time.Sleep(time.Duration(dice.IntN(300)) * time.Millisecond) // the shop's work
		return false
	default:
		return false
	}
	return true
}

// shopper wants one SKU after another for some user, with a key of its own or without, until stop. It asks again with
// the same key while the answer is not final, at whichever gate, and does not wait for long.
func (c *chaos) shopper(actor uint64, stop <-chan struct{}) {
	dice := c.dice(actor)
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 1}, Timeout: 3 * time.Second}
	defer client.CloseIdleConnections()
	for n := 0; ; n++ {
		sku, user, key := c.skus[dice.IntN(len(c.skus))], fmt.Sprint(dice.IntN(c.users)), ""
		if dice.IntN(2) == 0 {
			key = fmt.Sprintf("k%d-%d", actor, n)
		}
		for range 6 {
			if within(time.Duration(10+dice.IntN(150))*time.Millisecond, stop) {
				return
			}
			if c.ask(client, c.seats[dice.IntN(len(c.seats))].front, sku, user, key) {
				break
			}
		}
	}
}

// ask sends an order, and reports whether the answer is final.
func (c *chaos) ask(client *http.Client, front, sku, user, key string) bool {
	r, err := http.NewRequest("POST", "http://"+front+"/api/seckill/"+sku+"/order", nil)
	if err != nil {
		c.t.Error(err)
		return true
	}
	r.Header.Set("Cookie", "uid="+user)
	if key != "" {
		r.Header.Set("Idempotency-Key", key)
	}
	resp, err := client.Do(r)
	if err != nil {
		c.count("orders without an answer", 1)
		return false
	}
	defer resp.Body.Close()
	_, _ = io.Copy(io.Discard, resp.Body)
	switch reason := resp.Header.Get("X-Sluice-Reason"); {
	case resp.StatusCode == http.StatusOK:
		c.count("orders that ended in an order", 1)
		return true
	case reason == "":
		c.count(fmt.Sprintf("orders answered %d by the shop", resp.StatusCode), 1)
		return false
	default:
		c.count("orders rejected: "+reason, 1)
		return reason == "sold_out" || reason == "duplicate" || reason == "released" || reason == "key_reused"
	}
}

// operator restocks, cancels orders at the shop and refunds them, and opens what was closed for good reason.
type operator struct {
	*chaos
	dice *rand.Rand

	units     map[string]int       // added to each SKU
	owed      []addition           // not known whether they were done
	verifying map[string]time.Time // by SKU: since when
	cancelled map[string]string    // at the shop, and not refunded yet: serial -> SKU
	refunded  map[string]string    // and maybe lost by Redis since
	patience  time.Duration        // looks on so long while a SKU waits for an instance that has died
	waits     bool                 // opens nothing
	added     []addition           // done, and maybe lost by Redis since
	number    int
}

type addition struct {
	sku, key string
	units    int
}

func (o *operator) work(stop <-chan struct{}) {
	for !within(time.Duration(100+o.dice.IntN(500))*time.Millisecond, stop) {
		switch what := o.dice.IntN(4); {
		case what == 0:
			o.number++
			o.owed = append(o.owed, addition{o.skus[o.dice.IntN(len(o.skus))], fmt.Sprintf("restock-%d", o.number),
				1 + o.dice.IntN(20)})
			o.restock()
		case what == 1:
			o.cancel()
			o.refund(false)
		default:
			o.look(false)
		}
	}
}

// settle ends what is not done yet.
func (o *operator) settle() {
	o.owed, o.added = append(o.owed, o.added...), nil
	clear(o.units)
	maps.Copy(o.cancelled, o.refunded)
	testkit.Eventually(o.t, "all is well again, so the operator can end what is not done yet", func() bool {
		o.restock()
		o.refund(true)
		return len(o.owed)+len(o.cancelled) == 0
	})
}

// restock adds what is owed, once each: the key says so.
func (o *operator) restock() {
	var later []addition
	for _, a := range o.owed {
		if s := run(o.t, "", "stock", "add", "--config", o.file, a.sku, fmt.Sprint(a.units), "--key", a.key); s.code != 0 {
			later = append(later, a)
			continue
		}
		o.units[a.sku] += a.units
		o.added = append(o.added, a)
		o.count("restocks", 1)
	}
	o.owed = later
}

// cancel takes an order back at the shop.
func (o *operator) cancel() {
	o.mu.Lock()
	var serial, sku string
	for serial, sku = range o.orders {
		break
	}
	o.mu.Unlock()
	if serial == "" {
		return
	}
	o.shop.mu.Lock()
	_, there := o.shop.orders[serial]
	delete(o.shop.orders, serial)
	o.shop.denied[serial] = true
	o.shop.mu.Unlock()
	if there {
		o.cancelled[serial] = sku
	}
	o.mu.Lock()
	delete(o.orders, serial)
	o.mu.Unlock()
}

// refund tells the ledger what was cancelled. What it does not know it may have lost, for a while or for good.
func (o *operator) refund(forGood bool) {
	for serial, sku := range o.cancelled {
		switch status, text := o.post("/reservations/"+url.PathEscape(serial)+"/refund?sku="+sku, ""); {
		case status == http.StatusOK:
			o.count("refunds", 1)
			delete(o.cancelled, serial)
			o.refunded[serial] = sku
		case status == http.StatusConflict && strings.Contains(text, "released before"):
			o.count("refunds of what was released meanwhile", 1)
			delete(o.cancelled, serial)
		case status == http.StatusNotFound:
			if forGood {
				o.count("refunds of what no one remembers", 1)
				delete(o.cancelled, serial)
			}
		case status == http.StatusConflict:
			o.t.Errorf("refund of %s: %d %s", serial, status, text)
			delete(o.cancelled, serial)
		}
	}
}

// post asks some gate's control API. status 0 = there was no answer.
func (o *operator) post(path, body string) (status int, text string) {
	client := &http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
	at := o.seats[o.dice.IntN(len(o.seats))].admin
	resp, err := client.Post("http://"+at+"/api/v1"+path, "application/json", strings.NewReader(body))
	if err != nil {
		return 0, err.Error()
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		return 0, err.Error()
	}
	return resp.StatusCode, string(b)
}

// look opens SKUs that were frozen, and those that wait for the dead for too long, once all orders of the shop are in
// their ledgers. Where due is set it also does what else is not done.
func (o *operator) look(due bool) {
	list := run(o.t, "", "stock", "list", "--config", o.file)
	if list.code != 0 {
		return
	}
	for _, sku := range o.skus {
		switch state := stateIn(list.out, sku); {
		case state == "frozen" && o.lostItsFreeze(sku):
			o.open(sku, "SKUs whose freeze Redis had lost, reconciled and opened by hand")
		case o.waits:
		case state == "frozen":
			o.open(sku, "SKUs that were frozen, reconciled and opened by hand")
		case state != "verifying":
			delete(o.verifying, sku)
		case o.verifying[sku].IsZero():
			o.verifying[sku] = time.Now()
		case time.Since(o.verifying[sku]) > o.patience:
			o.open(sku, "SKUs that waited for an instance that died, reconciled and opened by hand")
		}
	}
	if due {
		o.restock()
		o.refund(false)
	}
}

// lostItsFreeze reports that an instance has seen a later epoch of the ledger: an operator alone may open it.
func (o *operator) lostItsFreeze(sku string) bool {
	v, err := o.redis.Client.HMGet(o.t.Context(), "sluice:shop:{"+sku+"}:s", "was", "later", "epoch").Result()
	if err != nil || v[0] != "frozen" || v[1] == nil {
		return false
	}
	later, _ := strconv.Atoi(fmt.Sprint(v[1]))
	epoch, _ := strconv.Atoi(fmt.Sprint(v[2]))
	return later > epoch
}

// stateIn is the state of a SKU in a list of stock; "" = on.
func stateIn(list, sku string) string {
	for line := range strings.Lines(list) {
		if strings.HasPrefix(line, sku+"\t") {
			_, state, _ := strings.Cut(strings.TrimSpace(line), "(")
			state, _, _ = strings.Cut(state, ":") // behind which is what to do
			return strings.TrimSuffix(state, ")")
		}
	}
	return ""
}

// open adopts what the ledger does not call sold, and then says that the ledger may be believed. Whatever the shop has
// is held at least, or lost, or a gate gave it back that must not.
func (o *operator) open(sku, what string) {
	orders := o.ordersOf(sku) // before the records: each order was held before it came
	records, err := o.redis.Client.HGetAll(o.t.Context(), "sluice:shop:{"+sku+"}:r").Result()
	if err != nil {
		return
	}
	for serial, user := range orders {
		switch record := records[serial]; {
		case strings.HasPrefix(record, "C|"):
			continue
		case record != "" && !strings.HasPrefix(record, "H|"):
			o.t.Errorf("the shop has the order %s of %s, the ledger has %q", serial, sku, record)
		}
		body := fmt.Sprintf(`{"orders":[{"serial":%q,"user":%q,"quantity":1}],"apply":true}`, serial, user)
		if status, _ := o.post("/stock/"+url.PathEscape(sku)+"/recover", body); status != http.StatusOK {
			time.Sleep(2 * time.Second) // until the call that was not answered is over; then all again
			return
		}
		o.count("orders adopted", 1)
	}
	if s := run(o.t, "", "stock", "recover", "--from", "none", "--apply", "--config", o.file, sku); s.code == 0 {
		o.count(what, 1)
		delete(o.verifying, sku)
	}
}

// ordersOf are the orders of a SKU that the shop has now: serial -> user.
func (o *operator) ordersOf(sku string) map[string]string {
	all := map[string]string{}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.shop.mu.Lock()
	defer o.shop.mu.Unlock()
	for serial, of := range o.orders {
		if user, there := o.shop.orders[serial]; of == sku && there {
			all[serial] = user
		}
	}
	return all
}
