package e2e

import (
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"sluice/internal/testkit"
)

var formAction = regexp.MustCompile(`<form method="post" action="([^"]+)">`)

// browses asks as a browser without scripts does, with its cookies, and follows redirects.
func browses(t *testing.T, c *http.Client, method, at string) (status int, page string) {
	t.Helper()
	req, err := http.NewRequest(method, at, nil)
	if err != nil {
		t.Fatal(err)
	}
	base, _, _ := strings.Cut(strings.TrimPrefix(at, "http://"), "/")
	for name, value := range map[string]string{"Accept": "text/html,application/xhtml+xml,*/*;q=0.8",
		"Accept-Language": "en", "Referer": "http://" + base + "/item?id=1001"} {
		req.Header.Set(name, value)
	}
	a, err := send(c, req)
	if err != nil {
		t.Fatal(err)
	}
	return a.status, a.body
}

func TestRoom_ABrowserWithoutScriptsJoinsWaitsAndOrders(t *testing.T) {
	t.Parallel()
	begins := time.Now().Add(30 * time.Minute)
	gates, _ := roomGates(t, 1, begins)
	g := gates[0]
	front := "http://" + g.front
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	at, err := url.Parse(front)
	if err != nil {
		t.Fatal(err)
	}
	jar.SetCookies(at, []*http.Cookie{{Name: "uid", Value: "7", Path: "/"}})
	browser := &http.Client{Jar: jar, Timeout: long}
	beginsAt(t, gates, begins, time.Now().Add(200*time.Millisecond))
	soon(t, "the room is open", func() bool { d, _ := g.room(t); return d.Phase == "open" })
	wants(t, run(t, "", "room", "hold", "rus", "--admin", g.admin).complaint,
		`waiting room "rus" is not configured; did you mean "rush"?`)
	ok(t, "room", "hold", "rush", "--admin", g.admin)
	soon(t, "the room is held", func() bool { d, _ := g.room(t); return d.Phase == "hold" })

	press := func(page, want string) string {
		t.Helper()
		action := formAction.FindStringSubmatch(page)
		if action == nil {
			t.Fatalf("no form in\n%s", page)
		}
		status, next := browses(t, browser, "POST", front+strings.ReplaceAll(action[1], "&amp;", "&"))
		if status != 200 || !strings.Contains(next, want) {
			t.Fatalf("%s: %d, want %q\n%s", action[1], status, want, next)
		}
		return next
	}
	status, page := browses(t, browser, "POST", front+"/api/seckill/1001/order")
	if status != 403 || !strings.Contains(page, "Join the waiting room") {
		t.Fatalf("an order without a pass: %d\n%s", status, page)
	}
	page = press(page, `href="/item?id=1001"`) // it waits: there is nothing to press
	wants(t, page, "You are waiting", `http-equiv="refresh"`, "No people are called for the moment")
	ok(t, "room", "resume", "rush", "--admin", g.admin)
	soon(t, "it is called", func() bool {
		_, page = browses(t, browser, "GET", front+"/.sluice/room/rush/me?back=/item?id=1001")
		return strings.Contains(page, "It is your turn")
	})
	page = press(page, "You can order now")
	wants(t, page, `href="/item?id=1001"`)
	if status, page := browses(t, browser, "POST", front+"/api/seckill/1001/order"); status != 200 {
		t.Errorf("an order with the pass: %d\n%s", status, page)
	}
	describesRooms(t, g)
}

// describesRooms wants the control API to speak of rooms as its description says.
func describesRooms(t *testing.T, g *running) {
	t.Helper()
	text, err := os.ReadFile("../admin/openapi.yaml")
	if err != nil {
		t.Fatal(err)
	}
	described, err := testkit.ReadAPI(string(text))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ method, path, operation, body string }{
		{"GET", "/rooms", "GET /api/v1/rooms", ""},
		{"POST", "/rooms/rush", "POST /api/v1/rooms/{name}", `{"message": "back at 20:30"}`},
		{"POST", "/rooms/rush", "POST /api/v1/rooms/{name}", `{"rate": 5}`},
		{"POST", "/rooms/rush", "POST /api/v1/rooms/{name}", `{"state": "gone"}`},
		{"POST", "/rooms/rush", "POST /api/v1/rooms/{name}", `{"beacon": ""}`},
		{"POST", "/rooms/rush", "POST /api/v1/rooms/{name}", `{"rate": 5, "state": "open"}`},
	} {
		a := g.control(c.method, "/api/v1"+c.path, c.body)
		bad := strings.Contains(c.body, "gone") || strings.Contains(c.body, "beacon") || strings.Contains(c.body, "5, ")
		if (a.status == 200) == bad {
			t.Errorf("%s %s: %d %s", c.path, c.body, a.status, a.body)
		}
		if err := described.Check(c.operation, a.status, a.header.Get("Content-Type"), []byte(a.body)); err != nil {
			t.Errorf("%s %s: %v", c.path, c.body, err)
		}
	}
	soon(t, "those who wait read the message", func() bool {
		return strings.Contains(g.ask("GET", "/.sluice/room/rush").body, "back at 20:30")
	})
}
