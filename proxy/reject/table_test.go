package reject

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"sluice/config"
)

// The page shows the table, with the statuses and waits of the default configuration.
func TestTable_IsThatOfThePage(t *testing.T) {
	const page = "../../docs/http.md"
	const begin, end = "<!-- reasons: written by make reference -->\n", "<!-- end of reasons -->\n"
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, begins := strings.Cut(string(text), begin)
	shown, after, ends := strings.Cut(rest, end)
	if !begins || !ends {
		t.Fatalf("%s has no marks %q and %q", page, begin, end)
	}
	want := tableForPage(t)
	if *update {
		if err := os.WriteFile(page, []byte(before+begin+want+end+after), 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	if shown != want {
		t.Errorf("%s does not show the table as it is: make reference", page)
	}
}

func tableForPage(t *testing.T) string {
	t.Helper()
	var out strings.Builder
	out.WriteString("| reason | class | status | Retry-After | when |\n| --- | --- | --- | --- | --- |\n")
	usual := config.Default()
	for _, reason := range Reasons() {
		row := table[reason]
		class, status, wait := row.class.String(), any(row.status), "–"
		if row.class == upstreamClass {
			class = "–"
		} else if row.status == 0 {
			status = defaultOf(t, usual, class, "status")
		}
		if row.class == NotStartedClass {
			wait = "to the start, at most 60 s, + jitter"
		} else if class != "–" {
			if s := fmt.Sprint(defaultOf(t, usual, class, "retry_after")); s != "0s" {
				wait = strings.TrimSuffix(s, "s") + " s + jitter"
			}
			if reason == Rate || reason == ConnRate {
				wait = "to the next token, at least " + strings.Replace(wait, " +", ", +", 1)
			}
		}
		fmt.Fprintf(&out, "| `%s` | %s | %v | %s | %s |\n", row.name, class, status, wait, row.meaning)
	}
	return out.String()
}

func defaultOf(t *testing.T, c *config.Config, class, key string) any {
	t.Helper()
	v, err := c.ValueOf("responses.classes." + class + "." + key)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func TestTable_EveryRowIsFilledAndNamesDiffer(t *testing.T) {
	names := map[string]bool{}
	for reason := Admitted + 1; reason < NumReasons; reason++ {
		row := table[reason]
		if row.name == "" || row.en == "" || row.zh == "" || row.meaning == "" || names[row.name] {
			t.Errorf("reason %d: row %+v lacks a name, a title or a meaning, or repeats a name", reason, row)
		}
		names[row.name] = true
	}
	for class := range numClasses {
		if class.String() == "" {
			t.Errorf("class %d has no name", class)
		}
	}
	for _, m := range messages {
		if m.key == "" || m.in[english] == "" || m.in[chinese] == "" || names[m.key] {
			t.Errorf("message %+v lacks a text, or has the key of a reason", m)
		}
	}
}

func TestReason_PropertiesOfTheTable(t *testing.T) {
	set := func(has func(Reason) bool) (names string) {
		for reason := range NumReasons {
			if has(reason) {
				names += reason.String() + " "
			}
		}
		return strings.TrimSpace(names)
	}
	for _, c := range []struct{ name, got, want string }{
		{"ClosesConnection", set(Reason.ClosesConnection),
			"malformed conn_open ip_conns loop too_slow client_gone internal"},
		{"MayHaveOrder", set(Reason.MayHaveOrder),
			"confirmed duplicate in_progress released stock_error upstream_error upstream_timeout"},
		{"OutcomeUnknown", set(Reason.OutcomeUnknown), "upstream_error upstream_timeout"},
		{"Transient, but not busy", set(func(r Reason) bool { return r.Transient() && r.Class() != Busy }),
			"loop overloaded paused stock_error upstream_busy no_upstream"},
		{"busy, but not Transient", set(func(r Reason) bool { return !r.Transient() && r.Class() == Busy }), "admitted"},
		{"mayHavePlaced", set(Reason.mayHavePlaced), "upstream_error upstream_timeout internal"},
	} {
		if c.got != c.want {
			t.Errorf("%s: %s, want %s", c.name, c.got, c.want)
		}
	}
}

func TestDetail_TextNamesCauseAndOperand(t *testing.T) {
	for detail, want := range map[Detail]string{
		{}:                                   "",
		{Cause: SKUInvalid}:                  "sku invalid",
		{UserMissing, "$cookie_uid"}:         "user missing: $cookie_uid",
		{ProtocolRule, "space before colon"}: "space before colon",
		{DuplicateKey, "sku"}:                "duplicate key: sku",
	} {
		if got := detail.String(); got != want || detail.isEmpty() != (want == "") {
			t.Errorf("%+v: %q, want %q", detail, got, want)
		}
	}
	labels := map[string]bool{}
	for cause := NoCause + 1; cause < NumCauses; cause++ {
		if cause.String() == "" || labels[cause.String()] {
			t.Errorf("cause %d: label %q is empty or repeated", cause, cause)
		}
		labels[cause.String()] = true
	}
}

// Each cause that a client may read has a row that says what to change.
func TestCauses_AreAllOnThePage(t *testing.T) {
	page, err := os.ReadFile("../../docs/http.md")
	if err != nil {
		t.Fatal(err)
	}
	for cause := NoCause + 1; cause < NumCauses; cause++ {
		if !strings.Contains(string(page), "`"+cause.String()+"`") {
			t.Errorf("docs/http.md has no row for the cause %v", cause)
		}
	}
}
