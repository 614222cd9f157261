package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sluice/internal/redistest"
)

// A shop's own page of the room is shown, a reload reads it again, and a page that would not work is rejected.
func TestRoom_OwnPageIsShownAndReadAgain(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	write := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	const page = `<h1>$title</h1><!-- if refresh --><meta http-equiv="refresh" content="$refresh"><!-- end -->` +
		`<form method="post" action="$action"><button>$button</button></form><a href="$back">$back_label</a>`
	write("waiting_room.html", "Ours: "+page)
	gates, _ := roomGatesOn(t, redistest.Start(t), 1, time.Now().Add(30*time.Minute),
		"responses.template_dir = \""+folder+"\"")
	g := gates[0]
	soon(t, "the room is open", func() bool { d, _ := g.room(t); return d.Phase == "pre_queue" })
	look := func() string {
		t.Helper()
		return g.ask("GET", "/.sluice/room/rush/me?back=/item", "Cookie: uid=7", "Accept: text/html",
			"Accept-Language: en").body
	}
	wants(t, look(), "Ours: <h1>Please join the line</h1>", `action="/.sluice/room/rush/join?back=/item"`)
	write("waiting_room.en.html", "New: "+page)
	write("en.toml", "room_join = \"Welcome\"\n")
	g.rereads(t)
	wants(t, look(), "New: <h1>Welcome</h1>")
	write("waiting_room.en.html", strings.ReplaceAll(page, "$action", "/join"))
	const complaint = "waiting_room.en.html: $action is missing"
	if s := run(t, "", "check", g.file); s.code == 0 || !strings.Contains(s.complaint, complaint) {
		t.Errorf("check: %d %s", s.code, s.complaint)
	}
	wants(t, look(), "New: <h1>Welcome</h1>")
}
