package proxy

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

func TestPublishedTableListsEveryReason(t *testing.T) {
	text, err := os.ReadFile("../docs/http.md")
	if err != nil {
		t.Fatal(err)
	}
	rows := 0
	for reason := Admitted + 1; reason < numReasons; reason++ {
		row := refusals[reason]
		class := classNames[row.class]
		if row.class == shopClass {
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
