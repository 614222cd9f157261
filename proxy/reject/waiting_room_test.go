package reject

import (
	"regexp"
	"strings"
	"testing"
)

func roomPages(t *testing.T, files map[string]string) RoomPages {
	t.Helper()
	p, err := NewRoomPages(Options{Languages: []string{"zh-CN", "en"}, Pages: PageFiles{Dir: "pages", Files: files}})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

const ownRoom = `<h1 class="$state">$title</h1><!-- if called -->Now!<!-- end -->` +
	`<!-- if not refresh -->still<!-- end --><!-- if refresh -->$refresh<!-- end -->` +
	`<form action="$action"><button>$button</button></form><a href="$back">x</a>$message`

func TestRoomPage_IsTheOneOfItsLanguageAndEscapesValues(t *testing.T) {
	p := roomPages(t, map[string]string{"waiting_room.html": ownRoom, "waiting_room.en.html": "EN " + ownRoom,
		"ja.toml": "room_called = \"あなたの番です\"\nroom_ahead = \"前に{n}人\""})
	for accept, want := range map[string]string{"en-GB": "EN <h1", "zh": "<h1", "ja": "<h1", "": "<h1"} {
		page := p.In([]byte(accept))
		got := string(page.Render(map[string]string{"state": "called", "title": page.Text("room_called"),
			"action": "/a?b&c", "message": `<i>"x"`}))
		if !strings.HasPrefix(got, want) || !strings.Contains(got, `class="called"`) || !strings.Contains(got, "Now!still") ||
			strings.Contains(got, "<i>") || !strings.Contains(got, `action="/a?b&#38;c"`) {
			t.Errorf("%q: %s", accept, got)
		}
	}
	ja := p.In([]byte("ja"))
	if ja.Lang() != "ja" || ja.Text("room_called") != "あなたの番です" ||
		ja.Text("room_over") != roomTexts["room_over"][english] {
		t.Errorf("%s: %q %q", ja.Lang(), ja.Text("room_called"), ja.Text("room_over"))
	}
}

func TestRoomPage_MustWorkWithoutAScript(t *testing.T) {
	for text, want := range map[string]string{
		strings.Replace(ownRoom, "$action", "", 1):  "pages/waiting_room.html: $action is missing",
		strings.ReplaceAll(ownRoom, "$refresh", ""): "pages/waiting_room.html: $refresh is missing",
		ownRoom + "\n$wait_ms":                      "pages/waiting_room.html:2: $wait_ms is not known",
		ownRoom + "<!-- if waits -->x<!-- end -->":  `condition "waits" is not known`,
	} {
		files := map[string]string{"waiting_room.html": text}
		o := Options{Languages: []string{"en"}, Pages: PageFiles{Dir: "pages", Files: files}}
		for name, err := range map[string]error{"rooms": second(NewRoomPages(o)), "all": second(New(o))} {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v, want %s", name, err, want)
			}
		}
	}
}

func second[T any](_ T, err error) error { return err }

// Each placeholder, condition and text of the built-in page is there in both languages.
func TestRoomPage_BuiltInIsComplete(t *testing.T) {
	for _, accept := range []string{"en", "zh-CN"} {
		page := roomPages(t, nil).In([]byte(accept))
		values := map[string]string{}
		for _, name := range roomTerms.placeholders {
			values[name] = "[" + name + "]"
		}
		for _, state := range roomStates {
			values["state"] = state
			got := string(page.Render(values))
			for _, name := range []string{"title", "ahead_text", "eta_text", "chance_text", "note", "message", "action",
				"button", "refresh", "verify", "verify_label", "lang"} {
				if !strings.Contains(got, "["+name+"]") {
					t.Errorf("%s, %s: no %s in\n%s", accept, state, name, got)
				}
			}
			if regexp.MustCompile(`\$[a-z]|<!--`).MatchString(got) ||
				!strings.Contains(got, `<noscript><meta http-equiv="refresh" content="[refresh]"></noscript>`) {
				t.Errorf("%s, %s:\n%s", accept, state, got)
			}
		}
		for key, text := range roomTexts {
			if text[english] == "" || text[chinese] == "" {
				t.Errorf("%s lacks a language", key)
			}
		}
	}
}
