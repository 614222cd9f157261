package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sluice/internal/redistest"
)

// The example of docs/waiting-room.md: no route looks at this claim but the room's bypass.
func TestRoom_ClaimOfItsBypassAloneIsReadOfTokens(t *testing.T) {
	t.Parallel()
	key, secret := filepath.Join(t.TempDir(), "jwt.key"), strings.Repeat("a", 32)
	if err := os.WriteFile(key, []byte(secret), 0o600); err != nil {
		t.Fatal(err)
	}
	auth := "auth.jwt_algorithm = \"HS256\"\nauth.jwt_key_file = \"" + key + "\"\n"
	gates, _ := roomGatesOn(t, redistest.Start(t), 1, time.Now().Add(-time.Minute), auth, `bypass = ["$jwt_level=vip"]`)
	g := gates[0]
	order := func(claims string) waiting {
		return g.call(t, "POST", orderPath, "", "Cookie", "uid=7", "Authorization", "Bearer "+signedBy(secret, claims))
	}
	soon(t, "the sale is on, and orders need a pass", func() bool {
		return order(`"level":"plain",`).header.Get("X-Sluice-Reason") == "room"
	})
	if w := order(`"level":"vip",`); w.header.Get("X-Sluice-Reason") == "room" {
		t.Errorf("the claim of the bypass lets no order in: %+v", w)
	}
	shown := run(t, "", "explain", "POST "+orderPath, "-H", "Cookie: uid=7", "-H",
		"Authorization: Bearer "+signedBy(secret, `"level":"vip",`), "--config", g.file)
	if shown.code != 0 {
		t.Errorf("explain: exit code %d: %s%s", shown.code, shown.out, shown.complaint)
	}
	text, err := os.ReadFile(g.file)
	if err != nil {
		t.Fatal(err)
	}
	s := run(t, "", "check", file(t, strings.Replace(string(text), auth, "", 1)))
	if s.code == 0 || !strings.Contains(s.out+s.complaint, "room[1].bypass[1]: $jwt_level is of a token that is not "+
		"verified; write auth.jwt_algorithm and auth.jwt_key_file") {
		t.Errorf("check without a key: exit code %d: %s%s", s.code, s.out, s.complaint)
	}
}

// A page of another origin takes no number for its visitor, and no pass. It would replace the visitor's ticket.
func TestRoom_PageOfAnotherOriginJoinsForNoVisitor(t *testing.T) {
	t.Parallel()
	gates, _ := roomGates(t, 1, time.Now().Add(30*time.Minute))
	opened(t, gates)
	g := gates[0]
	own := "http://" + g.front
	for i, c := range []struct {
		what     string
		fields   []string
		answered bool
	}{
		{"an app", nil, true},
		{"the room's own page", []string{"Sec-Fetch-Site", "same-origin", "Origin", own}, true},
		{"its page without a referrer", []string{"Sec-Fetch-Site", "same-origin", "Origin", "null"}, true},
		{"an old browser", []string{"Origin", own}, true},
		{"another site", []string{"Sec-Fetch-Site", "cross-site", "Origin", "https://evil.example"}, false},
		{"another host of this site", []string{"Sec-Fetch-Site", "same-site"}, false},
		{"another site in an old browser", []string{"Origin", "https://evil.example"}, false},
		{"a page without an origin in an old browser", []string{"Origin", "null"}, false},
		{"a host that begins alike", []string{"Origin", own + ".evil.example"}, false},
	} {
		fields := append(c.fields, "Cookie", fmt.Sprint("uid=", i)) // each user may join so often in a minute
		join := g.call(t, "POST", "/.sluice/room/rush/join", "", fields...)
		pass := g.call(t, "POST", "/.sluice/room/rush/pass", "", fields...)
		if c.answered {
			if join.status != 200 || pass.status != 409 {
				t.Errorf("%s: join %+v, pass %+v", c.what, join, pass)
			}
			continue
		}
		for _, w := range []waiting{join, pass} {
			if w.status != 403 || w.header.Get("X-Sluice-Reason") != "denied" || w.header.Get("Set-Cookie") != "" {
				t.Errorf("%s: %+v", c.what, w)
			}
		}
	}
	w := g.call(t, "GET", "/.sluice/room/rush/me", "", "Cookie", "uid=7", "Sec-Fetch-Site", "cross-site")
	if w.status != 200 {
		t.Errorf("a link to the room: %+v", w)
	}
	g.measures(t, `sluice_rejection_details_total{cause="cross_origin"} 10`)
}
