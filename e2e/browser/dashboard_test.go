package browser

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"sluice/internal/redistest"
	"sluice/internal/testkit"
)

var (
	watch = regexp.MustCompile(`(?m)^watch +(\S+)`)
	books = regexp.MustCompile(`ledger (\d+) total = (\d+) held \+ (\d+) sold \+ (\d+) free`)
)

// An operator who is new to Sluice follows the link, and steers a sale to its end. SLUICE_IMAGES names a folder for a
// picture of it; the sale is then longer.
func TestDemo_IsSteeredOnItsDashboard(t *testing.T) {
	t.Parallel()
	args := []string{"demo", "--keep", "--units=900", "--opens-in=30s"}
	if os.Getenv("SLUICE_IMAGES") != "" {
		args = []string{"demo", "--keep", "--units=1200", "--shoppers=3000", "--opens-in=25s"}
	}
	var demo *process
	play(t, "demo.mjs", func() any {
		demo = run(t, args...)
		testkit.Eventually(t, "the demo prints a link", func() bool {
			return demo.gone() || watch.FindString(demo.said.String()) != ""
		})
		if demo.gone() {
			t.Fatal("the demo has ended")
		}
		return map[string]any{"link": watch.FindStringSubmatch(demo.said.String())[1]}
	})
	if demo == nil {
		return
	}
	_ = demo.command.Process.Signal(syscall.SIGINT) // Ctrl-C
	demo.stop(t)
	n := books.FindStringSubmatch(demo.said.String())
	if n == nil || sum(n[2:]) != sum(n[1:2]) || demo.command.ProcessState.ExitCode() != 0 {
		t.Errorf("at its end it says %q, exit code %d", n, demo.command.ProcessState.ExitCode())
	}
}

func sum(numbers []string) (all int) {
	for _, text := range numbers {
		n, _ := strconv.Atoi(text) // digits alone
		all += n
	}
	return all
}

const (
	operatorToken = "an-operator-of-these-tests-alone"
	viewerToken   = "a-viewer-of-these-tests-alone-00"
	oddSKU        = "<img/src='x'>"
)

func TestDashboard_InABrowser(t *testing.T) {
	t.Parallel()
	redis, shop := redistest.Start(t), trade(t)
	play(t, "dashboard.mjs", func() any {
		dir := t.TempDir()
		secret := func(name, text string) string {
			path := filepath.Join(dir, name)
			if err := os.WriteFile(path, []byte(text+"\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			return strconv.Quote(path)
		}
		now := time.Now()
		g := open(t, redisAt(redis), shop.settings(), "admin.token_file = "+
			secret("operator", operatorToken), "admin.viewer_token_file = "+secret("viewer", viewerToken),
			`upstream.response_header_timeout = "1s"`, `upstream.timeout = "2s"`,
			"auth.room_key_file = "+secret("room", strings.Repeat("5e", 32)),
			"settle.database = \"sqlite:settle.db\"",
			schedule("rush", now.Add(-time.Minute), now.Add(time.Hour), ""), waiting,
			strings.Replace(routes, "user =", "room = \"lobby\"\nuser =", 1))
		redis.Client.HSet(t.Context(), "sluice:shop:settlement", "main", fmt.Sprintf(`{"home": "main", "at": %d, "up": true,
			"lag_seconds": 0.02, "behind": 7, "conflicts": [{"id": 3, "kind": "lost", "sku": "broken", "detail": %q}]}`,
			now.UnixMilli(), oddSKU))
		for _, sku := range []string{"broken", "rush", "stuck", oddSKU} {
			sluice(t, "stock", "set", "--config", g.file, sku, "5")
		}
		serials := []string{"order-that-was-placed", "order-that-was-lost"}
		for i, serial := range serials {
			req, err := http.NewRequest("POST", "http://"+g.front+"/api/seckill/broken/order", strings.NewReader(""))
			if err != nil {
				t.Fatal(err)
			}
			req.Header.Set("Idempotency-Key", serial)
			req.Header.Set("Cookie", "uid="+strconv.Itoa(i))
			resp, err := http.DefaultClient.Do(req)
			if err != nil || resp.StatusCode != http.StatusBadGateway {
				t.Fatalf("an order that the shop does not answer: %v %v", resp, err)
			}
			resp.Body.Close()
		}
		joinAndQueue(t, g.front)
		return map[string]any{
			"dashboard": "http://" + g.admin + "/", "operator": operatorToken, "viewer": viewerToken, "serials": serials,
			"odd": oddSKU, "pid": g.command.Process.Pid,
		}
	})
}

// waiting is a room before the sale, and a route whose orders wait.
const waiting = `
[queue]
max_in_flight = 3
grace = "0s"

[[room]]
name = "lobby"
sale = "rush"

[[route]]
name = "queued"
match = "POST /api/queued/{sku}"
gate = "reserve"
delivery = "queue"
sku = "$path_sku"
user = "$cookie_uid"
`

// joinAndQueue has three people join the room, and places an order whose outcome the shop never tells: it gets stuck.
func joinAndQueue(t *testing.T, front string) {
	t.Helper()
	for path, want := range map[string]int{"/.sluice/room/lobby/join": 200, "/api/queued/stuck": 202} {
		for user := range 3 {
			req, err := http.NewRequest("POST", "http://"+front+path, nil)
			if err != nil {
				t.Fatal(err)
			}
			req.Header.Set("Cookie", "uid="+strconv.Itoa(user))
			resp, err := http.DefaultClient.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			resp.Body.Close()
			if resp.StatusCode != want {
				t.Fatalf("%s: %d, want %d", path, resp.StatusCode, want)
			}
		}
	}
}
