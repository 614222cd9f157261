package reject

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

func TestTable_DocsListEveryReason(t *testing.T) {
	text, err := os.ReadFile("../../docs/http.md")
	if err != nil {
		t.Fatal(err)
	}
	rows := 0
	for reason := Admitted + 1; reason < NumReasons; reason++ {
		row := table[reason]
		class := row.class.String()
		if row.class == upstreamClass {
			class = "–"
		}
		if want := fmt.Sprintf("\n| `%s` | %s | ", row.name, class); !strings.Contains(string(text), want) {
			t.Errorf("docs/http.md has no row %q", want)
		} else if row.status != 0 && !strings.Contains(string(text), fmt.Sprintf("%s%d", want, row.status)) {
			t.Errorf("docs/http.md: %s has another status than %d", row.name, row.status)
		}
		rows++
	}
	if n := strings.Count(string(text), "\n| `"); n != rows {
		t.Errorf("docs/http.md has %d rows, the table %d", n, rows)
	}
}

func TestTable_EveryRowIsFilledAndNamesDiffer(t *testing.T) {
	names := map[string]bool{}
	for reason := Admitted + 1; reason < NumReasons; reason++ {
		row := table[reason]
		if row.name == "" || row.en == "" || row.zh == "" || names[row.name] {
			t.Errorf("reason %d: row %+v lacks a name or title, or repeats a name", reason, row)
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
		for reason := Admitted; reason < NumReasons; reason++ {
			if has(reason) {
				names += reason.String() + " "
			}
		}
		return strings.TrimSpace(names)
	}
	for _, c := range []struct{ name, got, want string }{
		{"ClosesConnection", set(Reason.ClosesConnection),
			"malformed conn_open ip_conns too_slow client_gone shutting_down internal"},
		{"MayHaveOrder", set(Reason.MayHaveOrder),
			"confirmed duplicate in_progress released stock_error upstream_error upstream_timeout"},
		{"OutcomeUnknown", set(Reason.OutcomeUnknown), "upstream_error upstream_timeout"},
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
