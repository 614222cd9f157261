package main

import (
	"net/http/httptest"
	"strings"
	"testing"

	"sluice/stockgate/ledger"
)

// command runs a command line in this process, as main does.
func command(t *testing.T, words string) error {
	t.Helper()
	var c commands
	meant, _, err := commandTree("sluice", "", &c).parse(strings.Fields(words))
	if err != nil {
		t.Fatalf("%s: %v", words, err)
	}
	return meant.does()()
}

func TestCommandsDecideReservations(t *testing.T) {
	k := atCounter(t, ledger.NewMemory(), 1)
	gate := httptest.NewServer(k.handler)
	defer gate.Close()
	hold := func(sku string) func(serial string) {
		return func(serial string) { k.hold(sku, serial, "u"+serial, 1, longAgo) }
	}
	for _, c := range []struct {
		words, complaint string
		held, sold       int64 // of 1001 afterwards
		before           func(serial string)
	}{
		{"stock set 1001 10 --limit 3", "", 0, 0, nil},
		{"stock set 1002 10", "", 0, 0, nil},
		{"reservation confirm a", "", 0, 1, hold("1001")},
		{"reservation confirm a", "", 0, 1, nil},
		{"reservation release a", "refund it", 0, 1, nil},
		{"reservation refund a", "", 0, 0, nil},
		{"reservation release b", "", 0, 0, hold("1001")},
		{"reservation get b", "", 0, 0, nil},
		{"reservation show b --sku 1002", "no such reservation", 0, 0, nil},
		{"reservation confirm c", "", 0, 0, hold("1002")},
		{"reservation confirm d --sku 1002", "no such reservation", 1, 0, hold("1001")},
		{"reservation list --unknown", "", 1, 0, nil},
		{"reservation list --state held --sku 1001 --limit 1", "", 1, 0, nil},
		{"reservation list --sku 1003", "no such SKU", 1, 0, nil},
		{"reservation adopt e --sku 1001 --user 7 --quantity 2", "", 1, 2, nil},
		{"reservation adopt e --sku 1001 --user 8", "correct what you sent", 1, 2, nil},
		{"reservation adopt f --sku {} --user 8", "no request can name it", 1, 2, nil},
		{"stock add 1001 -7 --key k", "", 1, 2, nil},
		{"stock add 1001 -7 --key k", "", 1, 2, nil},
		{"stock set 1001 2", "1 held + 2 sold", 1, 2, nil},
		{"stock pause 1001", "", 1, 2, nil},
		{"stock end 1001", "", 1, 2, nil},
		{"stock resume 1001", "", 1, 2, nil},
		{"stock get 1001", "", 1, 2, nil},
		{"stock list --limit 1", "", 1, 2, nil},
		{"stock get 1001 --kind layout", "all of them reserve", 1, 2, nil},
	} {
		if c.before != nil {
			c.before(strings.Fields(c.words)[2])
		}
		err := command(t, c.words+" --admin "+gate.URL)
		if (err == nil) != (c.complaint == "") || err != nil && !strings.Contains(err.Error(), c.complaint) {
			t.Errorf("%s: %v, want %q", c.words, err, c.complaint)
		}
		if s := k.stock("1001"); s.Held != c.held || s.Sold != c.sold {
			t.Errorf("%s: %d held, %d sold; want %d and %d", c.words, s.Held, s.Sold, c.held, c.sold)
		}
	}
	if s := k.stock("1001"); s.Total != 3 || s.Limit != 3 || s.State != ledger.On {
		t.Errorf("in the end: %+v", s)
	}
	if s := k.stock("1002"); s.Sold != 1 || s.Limit != 1 {
		t.Errorf("the other SKU in the end: %+v", s)
	}
}

// Freezing is what the ledger does; only who has looked after the orders opens it.
func TestResumeOfAFrozenLedgerNeedsItsFlag(t *testing.T) {
	k := atCounter(t, ledger.NewMemory(), 1)
	gate := httptest.NewServer(k.handler)
	defer gate.Close()
	if err := command(t, "stock set 1001 10 --admin "+gate.URL); err != nil {
		t.Fatal(err)
	}
	if _, err := k.store.SetState(t.Context(), "1001", ledger.Frozen); err != nil {
		t.Fatal(err)
	}
	if err := command(t, "stock resume 1001 --admin "+gate.URL); err == nil || !strings.Contains(err.Error(), "adopt") {
		t.Errorf("resume: %v", err)
	}
	if err := command(t, "stock resume 1001 --reconciled --admin "+gate.URL); err != nil || k.stock("1001").State != ledger.On {
		t.Errorf("resume --reconciled: %v", err)
	}
}
