package e2e

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"testing"

	"sluice/admin"
	"sluice/internal/redistest"
	"sluice/internal/testkit"
)

// The token of consumers settles what was handed out by take, and no other order.
func TestPull_InventedReceiptSettlesNothing(t *testing.T) {
	t.Parallel()
	r := redistest.Start(t)
	g, token := pulling(t, r, "queue.redeliver = \"by_key\"", `upstream.targets = ["http://127.0.0.1:9"]`)
	ok(t, "stock", "set", "--config", g.file, "1001", "5")
	for _, user := range []string{"ann", "bob"} {
		if w := g.call(t, "POST", orderPath, "", "Cookie", "uid="+user, "Idempotency-Key", "key-"+user); w.status != 202 {
			t.Fatalf("%+v", w)
		}
	}
	taken := firstOrders(t, g, token, 1)
	if taken.Orders[0].Serial != "key-ann" {
		t.Fatalf("%+v", taken)
	}
	given := taken.Orders[0].Receipt
	for _, receipt := range []string{"1.x", "0.", "1", "", ".", given, given[:len(given)-1], "2" + given[1:]} {
		var said settledOrders
		one := admin.QueuedOrder{SKU: "1001", Serial: "key-bob", Receipt: receipt}
		if post(t, g, token, "settle", settleOne(&one, "confirmed", nil), &said); said.Orders[0].Done != "fault" ||
			!strings.Contains(said.Orders[0].Error, "was not given out for this order") {
			t.Errorf("receipt %q: %+v", receipt, said)
		}
	}
	if got := ledgerOf(t, r, "1001"); got != (account{total: 5, held: 2}) {
		t.Errorf("%+v: a consumer has confirmed an order that it was not given", got)
	}
	var said settledOrders
	post(t, g, token, "settle", settleOne(&taken.Orders[0], "confirmed", nil), &said)
	if said.Orders[0].Done != "changed" {
		t.Errorf("the receipt that was given out: %+v", said)
	}
}

func TestFiles_WritableConfigurationIsToldAtTheStartAndByCheck(t *testing.T) {
	t.Parallel()
	shop := open(t, nil)
	path := file(t, listeners+shop.setting()+"\nserver.shutdown_delay = \"0s\"\n"+routes)
	if out := ok(t, "check", path); strings.Contains(out, "may write it") {
		t.Errorf("a file of its owner alone: %s", out)
	}
	if err := os.Chmod(path, 0o666); err != nil {
		t.Fatal(err)
	}
	wants(t, ok(t, "check", path), path+": every user of this machine may write it", "chmod o-w "+path)
	g := start(t, path, exec.Command(binary, "run", "--config", path))
	g.logs(t, "every user of this machine may write", "chmod o-w")
}

// Clients that send their request a byte at a time keep no probe and no operator out.
func TestOperators_AreAnsweredBesideSlowHeads(t *testing.T) {
	t.Parallel()
	g := gate(t, open(t, nil).setting(), `stock.source = "off"`,
		"[[route]]\nname = \"all\"\nmatch = \"/\"\ngate = \"pass\"")
	for _, address := range []string{g.ops, g.admin} {
		for i := range 560 {
			from := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 2, byte(1+i%8))}, Timeout: long}
			c, err := from.Dial("tcp", address)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { c.Close() })
			if _, err := io.WriteString(c, "GET / HT"); err != nil {
				t.Fatal(err)
			}
		}
	}
	g.client.CloseIdleConnections()
	if status, text := g.peek("/livez"); status != 200 {
		t.Errorf("/livez: %d %s", status, text)
	}
	if a := g.control("GET", "/api/v1/config", ""); a.status != 200 {
		t.Errorf("/api/v1/config: %d %.200s", a.status, a.body)
	}
}

// A look-up whose head has come in part when the drain begins hears the state of its order.
func TestDelivery_DrainTellsTheStateOfAnOrder(t *testing.T) {
	t.Parallel()
	r, shop := redistest.Start(t), openLameShop(t)
	g := gate(t, redisAt(r), boundless, shop.patient("http://"+testkit.FreeAddress(t)), // no shop is there: orders wait
		"server.read_timeout = \"60s\"\nserver.shutdown_timeout = \"60s\"",
		waitingRoutes)
	ok(t, "stock", "set", "--config", g.file, "1001", "5")
	if w := g.call(t, "POST", orderPath, "", "Cookie", "uid=ann", "Idempotency-Key", "key-ann"); w.status != 202 {
		t.Fatalf("%+v", w)
	}
	g.client.CloseIdleConnections()
	c := dial(t, g.front)
	if _, err := io.WriteString(c, "GET /.sluice/orders/key-ann?sku=1001 HTTP/1.1\r\nHost: shop\r\n"); err != nil {
		t.Fatal(err)
	}
	g.ask("GET", "/") // it is accepted by now
	g.terminate()
	soon(t, "the deliveries have ended, and the listener is closed", func() bool {
		other, err := net.Dial("tcp", g.front)
		if err == nil {
			other.Close()
		}
		return err != nil
	})
	if _, err := io.WriteString(c, "\r\n"); err != nil {
		t.Fatal(err)
	}
	resp, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != 200 || !strings.Contains(string(body), `"state":"queued"`) {
		t.Errorf("%d %s, %v", resp.StatusCode, body, err)
	}
	c.Close()
	if code := g.stopped(); code != 0 { // else the end of the test would stop it a second time
		t.Errorf("exit code %d", code)
	}
}
