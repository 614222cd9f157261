package e2e

import (
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sluice/internal/redistest"
	"sluice/internal/testkit"
)

const exampleSecret = "an-example-of-a-secret-of-32-bytes"

func TestExamples_ShopInGoSellsBehindTheGate(t *testing.T) {
	t.Parallel()
	shop := filepath.Join(t.TempDir(), "shop")
	if out, err := exec.Command("go", "build", "-buildvcs=false", "-o", shop,
		"../examples/go").CombinedOutput(); err != nil {
		t.Fatalf("build the shop: %v\n%s", err, out)
	}
	trades(t, "go", exec.Command(shop))
}

func TestExamples_ShopInNodeSellsBehindTheGate(t *testing.T) {
	t.Parallel()
	node, err := exec.LookPath("node")
	if err != nil {
		t.Skip("node is not installed")
	}
	trades(t, "node-express", exec.Command(node, "../examples/node-express/shop.mjs"))
}

// trades runs an example: its shop in a process, its own configuration, two units, three buyers.
func trades(t *testing.T, example string, shop *exec.Cmd) {
	t.Helper()
	port, redis, secret := portOf(t, testkit.FreeAddress(t)), redistest.Start(t), file(t, exampleSecret+"\n")
	shop.Env = append(surroundings(), "PORT="+port, "SLUICE_SECRET="+exampleSecret)
	if err := shop.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = shop.Process.Kill() // it has nothing to finish
		_ = shop.Wait()
	})
	soon(t, "the shop listens", func() bool {
		conn, err := net.Dial("tcp", "127.0.0.1:"+port)
		if err == nil {
			conn.Close()
		}
		return err == nil
	})
	text, err := os.ReadFile("../examples/" + example + "/config.toml")
	if err != nil {
		t.Fatal(err)
	}
	path := file(t, "server.shutdown_delay = \"0s\"\n"+listeners+strings.ReplaceAll(string(text), "127.0.0.1:9000",
		"127.0.0.1:"+port)+patientTable)
	environment := []string{"SLUICE_SECRET_FILE=" + secret, "REDIS_ADDR=" + redis.Addr}
	stock := exec.Command(binary, "stock", "set", "--config", path, "1001", "2")
	stock.Env = append(surroundings(), environment...)
	if out, err := stock.CombinedOutput(); err != nil {
		t.Fatalf("stock set: %v\n%s", err, out)
	}
	command := exec.Command(binary, "run", "--config", path)
	command.Env = environment
	g := start(t, path, command)
	for user, want := range []int{200, 200, 409} {
		status, said := bought(t, "http://"+g.front, user)
		for strings.Contains(said, "undecided") { // until the gate knows that both orders are confirmed
			time.Sleep(pause) // between two looks
			status, said = bought(t, "http://"+g.front, user)
		}
		if status != want || strings.Contains(said, "Sluice-Order") {
			t.Errorf("buyer %d: %d %s, want %d", user, status, said, want)
		}
	}
	if status, _ := bought(t, "http://127.0.0.1:"+port, 9); status != http.StatusForbidden {
		t.Errorf("an order past the gate: %d, want 403", status)
	}
	soon(t, "both units are sold", func() bool { return g.metric("sluice_reservations_total", `event="confirmed"`) == 2 })
}

// bought orders one unit, and returns the answer with its headers.
func bought(t *testing.T, base string, user int) (status int, said string) {
	t.Helper()
	req, err := http.NewRequest("POST", base+"/api/seckill/1001/order", strings.NewReader(""))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Cookie", fmt.Sprintf("uid=%d", user))
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	return resp.StatusCode, fmt.Sprint(resp.Header)
}
