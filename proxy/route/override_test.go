package route

import (
	"strings"
	"testing"

	"sluice/proxy/reject"
)

func TestTable_OverrideThatLeadsToStockIsAmbiguous(t *testing.T) {
	table := tableOf(t, "POST /order/test", "!PUT /order/{sku}", "!POST /reserve/{sku}", "/any/", "/")
	for _, tt := range []struct {
		request, methods, paths string // values are parted by "|"
		want                    string // the route, with "!" where the request is ambiguous
	}{
		{"POST /order/1", "PUT", "", "!PUT /order/{sku}"},
		{"POST /order/1", "put", "", "!PUT /order/{sku}"},
		{"GET /order/1", "PATCH|PUT", "", "!PUT /order/{sku}"},
		{"POST /order/1", "GET, PUT", "", "!PUT /order/{sku}"},
		{"POST /page", "GET, PUT", "", "/"},
		{"POST /order/1", "GET", "", "/"},
		{"POST /order/1", "", "", "/"},
		{"POST /order/1", "|", "|", "/"},
		{"GET /order/test", "POST", "", "/"},
		{"GET /order/TEST", "PUT", "", "!PUT /order/{sku}"},
		{"GET /reserve/1", "POST", "", "!POST /reserve/{sku}"},
		{"POST /page", "", "/reserve/1", "!POST /reserve/{sku}"},
		{"POST /page", "", "/Reserve//1?x", "!POST /reserve/{sku}"},
		{"POST /page", "", "/reserve/1#x", "!POST /reserve/{sku}"},
		{"POST /page", "", "http://s/page", "!POST /reserve/{sku}"}, // could be any path
		{"POST /page", "", "reserve/1", "!POST /reserve/{sku}"},
		{"POST /page", "", "//s/reserve/1", "!POST /reserve/{sku}"},
		{"POST /page", "", "?x", "!POST /reserve/{sku}"},
		{"GET /page", "", "?x", "/"},
		{"POST /page", "", "/%2e%2e/page", "!POST /reserve/{sku}"},
		{"POST /page", "", "/any/%2f;x", "/"},
		{"POST /page", "", "/elsewhere|/page", "/"},
		{"GET /page", "", "/reserve/1", "/"},
		{"GET /page", "POST", "/reserve/1", "!POST /reserve/{sku}"},
		{"GET /page", "PUT", "/elsewhere|/order/1", "!PUT /order/{sku}"},
		{"GET /page", strings.Repeat("|", maxOverrides), "", "!PUT /order/{sku}"},
		{"POST /any/reserve/1", "POST", "/any/x", "/any/"},
		{"POST /reserve/1", "GET", "", "!POST /reserve/{sku}"},
		{"POST /reserve/1", "", "/page", "!POST /reserve/{sku}"},
		{"POST /reserve/1", "", "/reserve/2", "!POST /reserve/{sku}"},
		{"POST /reserve/1", "", "/Reserve/1", "!POST /reserve/{sku}"},
		{"POST /reserve/1", "post|", "/reserve/1?x|", "POST /reserve/{sku}"},
	} {
		method, path, _ := strings.Cut(tt.request, " ")
		q := Query{Method: []byte(method), Path: []byte(path)}
		if tt.methods != "" {
			q.OverrideMethods = values(tt.methods)
		}
		if tt.paths != "" {
			q.OverridePaths = values(tt.paths)
		}
		m, detail := table.Match(q)
		got := table.entries[m.Index].text
		if detail.Cause == reject.MethodOverride {
			got = "!" + got
		}
		if got != tt.want || detail.Cause == reject.PathNotCanonical {
			t.Errorf("%s %q %q: %q, want %q", tt.request, tt.methods, tt.paths, got, tt.want)
		}
	}
}

func values(list string) (v [][]byte) {
	for value := range strings.SplitSeq(list, "|") {
		v = append(v, []byte(value))
	}
	return v
}

func TestTable_AmbiguousPathComesBeforeAnOverride(t *testing.T) {
	table := tableOf(t, "!PUT /order/{sku}", "!POST /reserve/{sku}", "/")
	m, detail := table.Match(Query{
		Method: []byte("POST"), Path: []byte("/Reserve/1"),
		OverrideMethods: values("PUT"), OverridePaths: values("/order/1"),
	})
	if m.Index != 1 || detail.Cause != reject.PathNotCanonical {
		t.Errorf("route %d, %v", m.Index, detail)
	}
}
