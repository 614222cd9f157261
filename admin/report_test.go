package admin

import (
	"context"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"sluice/stockgate/ledger"
)

// kept are ledgers of SKUs in fixed numbers, with their orders. Each read while changing is above 0 is of another
// version.
type kept struct {
	Ledgers
	stock    map[string]Ledger
	orders   map[string][]Reservation
	changing int
	looks    int
}

func (k *kept) Stock(_ context.Context, sku string) (Stock, error) {
	l, ok := k.stock[sku]
	if !ok {
		return Stock{}, fmt.Errorf("%q: %w", sku, ErrNoSKU)
	}
	if k.looks++; k.looks <= k.changing {
		l.Ver += int64(k.looks)
	}
	return Stock{SKU: sku, Left: l.Free, Ledger: &l}, nil
}

func (k *kept) SKUs(_ context.Context, limit int) (skus []string, err error) {
	for sku := range k.stock {
		skus = append(skus, sku)
	}
	return skus[:min(limit, len(skus))], nil
}

func (k *kept) Reservations(_ context.Context, sku string, limit int) ([]Reservation, error) {
	all := k.orders[sku]
	return all[:min(limit, len(all))], nil
}

// scheduled is one sale.
type scheduled struct {
	Sales
	Sale
}

func (s scheduled) All() []Sale { return []Sale{s.Sale} }

func balanced() *kept {
	return &kept{
		stock: map[string]Ledger{"1001": {Total: 10, Held: 1, Sold: 5, Free: 4, State: "on"},
			"=1+1": {Total: 2, Free: 2, State: "on"}},
		orders: map[string][]Reservation{"1001": {{State: ledger.StatusHeld, Quantity: 1},
			{State: ledger.StatusSold, Quantity: 2}, {State: ledger.StatusSold, Quantity: 3},
			{State: ledger.StatusReleased, Quantity: 1}}},
	}
}

func reporting(t *testing.T, k *kept) *API {
	t.Helper()
	now := time.Now()
	return &API{Gate: wheel{}, Controller: &wheel{}, History: still(t), Ledgers: k, Log: slog.New(slog.DiscardHandler),
		Sales: scheduled{Sale: Sale{Name: "double-11", SKUs: []string{"1001", "none"}, Starts: now.Add(-time.Hour),
			Ends: now.Add(time.Hour), State: "on"}}}
}

func reportOf(t *testing.T, a *API, query string) (r Report) {
	t.Helper()
	w := ask(a.Handler(), "GET", "/api/v1/report"+query, "", nil)
	if err := described3(t).Check("GET /api/v1/report", w.Code, w.Header().Get("Content-Type"),
		w.Body.Bytes()); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(w.Body.Bytes(), &r); err != nil || w.Code != 200 {
		t.Fatalf("%d %s: %v", w.Code, w.Body, err)
	}
	return r
}

func TestReport_BalancesWhenTheOrdersComeToTheLedger(t *testing.T) {
	k := balanced()
	all := reportOf(t, reporting(t, k), "")
	if !*all.Balances || len(all.Stock) != 2 || all.Stock[0].SKU != "1001" || !all.Stock[0].Counted || all.Sale != nil {
		t.Errorf("%+v", all)
	}
	if of := reportOf(t, reporting(t, k), "?sale=double-11"); len(of.Stock) != 1 || of.Sale == nil ||
		of.Sale.Name != "double-11" || !*of.Balances {
		t.Errorf("of a sale: %+v", of)
	}
}

func TestReport_SaysWhatDoesNotBalance(t *testing.T) {
	for name, c := range map[string]struct {
		ledger Ledger
		orders []Reservation
		says   string
	}{
		"a sum": {Ledger{Total: 10, Sold: 5, Free: 4}, []Reservation{{State: ledger.StatusSold, Quantity: 5}},
			"10 is not 0 + 5 + 4"},
		"more than there": {Ledger{Total: 10, Sold: 12, Free: -2},
			[]Reservation{{State: ledger.StatusSold, Quantity: 12}},
			"2 more are held and sold than there are"},
		"below none": {Ledger{Total: 10, Held: -1, Free: 11}, nil, "below 0"},
		"an order too many": {Ledger{Total: 10, Sold: 1, Free: 9}, []Reservation{{State: ledger.StatusSold, Quantity: 2}},
			"the orders come to 0 held and 2 sold"},
		"an order too few": {Ledger{Total: 10, Held: 1, Free: 9}, nil, "the orders come to 0 held and 0 sold"},
	} {
		k := balanced()
		k.stock["1001"], k.orders["1001"] = c.ledger, c.orders
		r := reportOf(t, reporting(t, k), "")
		b := r.Stock[slices.IndexFunc(r.Stock, func(b LedgerTotals) bool { return b.SKU == "1001" })]
		if *r.Balances || b.Balances || !strings.Contains(b.Fault, c.says) {
			t.Errorf("%s: %+v", name, b)
		}
	}
}

// While orders come in, what was counted belongs to no one moment.
func TestReport_OrdersAreNotCountedWhileOthersComeIn(t *testing.T) {
	k := balanced()
	delete(k.stock, "=1+1")
	k.orders["1001"], k.changing = nil, 1000
	if r := reportOf(t, reporting(t, k), ""); r.Stock[0].Counted || !*r.Balances {
		t.Errorf("%+v", r.Stock)
	}
	k.looks, k.changing = 0, 3 // a little, and then no more
	if r := reportOf(t, reporting(t, k), ""); !r.Stock[0].Counted || *r.Balances {
		t.Errorf("%+v", r.Stock)
	}
}

func TestReport_OfSomethingUnknownSaysWhatThereIs(t *testing.T) {
	h := reporting(t, balanced()).Handler()
	for query, want := range map[string]struct {
		status int
		says   string
	}{"?sale=x": {404, "double-11"}, "?sku=9": {404, "no such SKU"}, "?format=xml": {400, "csv"},
		"?sku=%20": {400, "not valid"}} {
		if w := ask(h, "GET", "/api/v1/report"+query, "", nil); w.Code != want.status ||
			!strings.Contains(w.Body.String(), want.says) {
			t.Errorf("%s: %d %s", query, w.Code, w.Body)
		}
	}
}

func TestReport_IsAFileThatNoSpreadsheetExecutes(t *testing.T) {
	w := ask(reporting(t, balanced()).Handler(), "GET", "/api/v1/report?format=csv", "", nil)
	rows, err := csv.NewReader(w.Body).ReadAll()
	if err != nil || w.Header().Get("Content-Type") != "text/csv; charset=utf-8" ||
		!strings.Contains(w.Header().Get("Content-Disposition"), ".csv\"") {
		t.Fatalf("%v %v", err, w.Header())
	}
	for _, want := range [][]string{{"kind", "name", "field", "value"}, {"stock", "1001", "sold", "5"},
		{"stock", "'=1+1", "total", "2"}, {"report", "", "balances", "true"}} {
		if !slices.ContainsFunc(rows, func(row []string) bool { return slices.Equal(row, want) }) {
			t.Errorf("%q is not in %q", want, rows)
		}
	}
}

func TestReport_TallyAddsUp(t *testing.T) {
	var m minutes
	second := func(at, requests int64, rejected map[string]int64) *Second {
		s := &Second{At: at, Span: 1, Requests: requests, Rejected: rejected, Upstream: UpstreamSecond{Requests: 1,
			InFlight: at % 7}}
		s.Admitted = requests - rejected["window"] - rejected["sold_out"]
		return s
	}
	m.add(second(600, 100, map[string]int64{"window": 90})) // the last of minute 9
	m.add(second(601, 50, map[string]int64{"window": 40, "sold_out": 5}))
	m.add(second(660, 10, map[string]int64{"sold_out": 10}))
	m.add(second(661, 7, nil)) // of minute 11
	got := m.sum(600, 660)
	if got.Requests != 60 || got.Admitted != 5 || got.Rejected["window"] != 40 || got.Rejected["sold_out"] != 15 ||
		got.Peaks.Requests != (Peak{50, 601}) || got.UpstreamRequests != 2 {
		t.Errorf("a minute: %+v", got)
	}
	if all := m.sum(0, 1<<40); all.Requests != 167 || all.Peaks.Rejected != (Peak{90, 600}) {
		t.Errorf("all: %+v", all)
	}
	m.add(second(600+keptMinutes*60, 3, nil)) // takes the place of the first
	if all := m.sum(0, 1<<40); all.Requests != 70 {
		t.Errorf("a day later: %+v", all)
	}
}

func TestReport_MomentsAreThoseThatWereSeen(t *testing.T) {
	all := map[string]*moments{}
	look := func(at, sold, free int64) moments {
		r := read(none(), nil)
		r.stock["1"] = &StockSecond{SKU: "1", Sold: sold, Free: free}
		r.updateMoments(all, at)
		return *all["1"]
	}
	look(10, 0, 5)
	if m := look(11, 1, 4); m.firstSold != 11 || m.soldOut != 0 {
		t.Errorf("%+v", m)
	}
	if m := look(12, 5, 0); m.firstSold != 11 || m.soldOut != 12 {
		t.Errorf("%+v", m)
	}
	if m := look(13, 5, 3); m.soldOut != 0 {
		t.Errorf("restocked: %+v", m)
	}
	read(none(), nil).updateMoments(all, 14)
	if m := look(15, 5, 0); m.firstSold != 0 || m.soldOut != 0 {
		t.Errorf("it was so when it was first seen: %+v", m)
	}
}

// A report never says of books that it did not look at that they balance.
func TestReport_OfTooManyBooksSaysSo(t *testing.T) {
	k := &kept{stock: map[string]Ledger{}}
	for i := range 1500 {
		k.stock[fmt.Sprintf("sku-%04d", i)] = Ledger{Total: 1, Free: 1, State: "on"}
	}
	if all := reportOf(t, reporting(t, k), ""); len(all.Stock) != 1500 || all.More || !*all.Balances {
		t.Errorf("%d books of 1500, more %v, balances %v", len(all.Stock), all.More, *all.Balances)
	}
	for i := range maxBooks {
		k.stock[fmt.Sprintf("other-%04d", i)] = Ledger{Total: 1, Free: 1, State: "on"}
	}
	if all := reportOf(t, reporting(t, k), ""); len(all.Stock) != maxBooks || !all.More {
		t.Errorf("%d books, more %v", len(all.Stock), all.More)
	}
}

// begun is a gate that began at a time.
type begun struct {
	wheel
	at time.Time
}

func (b begun) Status() Status {
	s := b.wheel.Status()
	s.Started = b.at
	return s
}

// After a restart in the middle of a sale, the requests before it are not counted; and the report does not say that
// they are.
func TestReport_BeginsWithTheProcessThatCounted(t *testing.T) {
	for started, starts := range map[time.Duration]bool{-10 * time.Minute: false, -2 * time.Hour: true} {
		a := reporting(t, balanced())
		at := time.Now().Add(started)
		a.Gate = begun{at: at}
		want := at
		if starts {
			want = a.Sales.All()[0].Starts
		}
		if r := reportOf(t, a, "?sale=double-11"); !r.From.Equal(want) {
			t.Errorf("from %v, want %v: the sale began %v, the process %v", r.From, want, a.Sales.All()[0].Starts, at)
		}
	}
}

func TestReport_NoNameIsAFormula(t *testing.T) {
	for name, want := range map[string]string{
		"1001": "1001", "=1+1": "'=1+1", "-7": "'-7", "@SUM(A1)": "'@SUM(A1)", "＝1+1": "'＝1+1",
		"a;=1+1": "a;'=1+1", "a;b=c": "a;b=c", ";;+1": ";;'+1", "a-b": "a-b", "": "",
	} {
		if got := plainText(name); got != want {
			t.Errorf("%q: %q, want %q", name, got, want)
		}
	}
}
