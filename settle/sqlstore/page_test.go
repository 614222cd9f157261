package sqlstore_test

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"sluice/internal/redistest"
	"sluice/settle/sqlstore"
)

// statement is the statement of docs/settlement-reference.md that begins so.
func statement(t *testing.T, beginning string) string {
	t.Helper()
	page := string(must(os.ReadFile("../../docs/settlement-reference.md"))(t))
	_, rest, found := strings.Cut(page, beginning)
	text, _, ended := strings.Cut(rest, ";\n")
	if !found || !ended {
		t.Fatalf("docs/settlement-reference.md has no statement %s", beginning)
	}
	return beginning + text
}

func TestPage_ItsStatementsWork(t *testing.T) {
	t.Parallel()
	everyDatabase(t, func(t *testing.T, url string) {
		s := newSite(t, redistest.Start(t), url, sqlstore.Stock{})
		s.ledger.set("1001", 9)
		s.ledger.buy("1001", 0, 1)
		s.ledger.reserve("1001", "held", "u", 1)
		s.drain("1001")
		begins := map[string]string{
			"sqlite": "SELECT json_object(", "postgres": "SELECT json_build_object(", "mysql": "SELECT JSON_OBJECT(",
		}
		scheme, _, _ := strings.Cut(url, ":")
		lines := must(s.store.Texts(t.Context(), statement(t, begins[scheme])))(t)
		if len(lines) != 1 {
			t.Fatalf("%q: want the sold order alone", lines)
		}
		var o struct {
			SKU, Serial, User string
			Quantity          int64
		}
		if err := json.Unmarshal([]byte(lines[0]), &o); err != nil ||
			o.SKU != "1001" || o.Serial != "1001-0" || o.User != "u0" || o.Quantity != 1 {
			t.Errorf("%s: %+v, %v", lines[0], o, err)
		}
	})
}
