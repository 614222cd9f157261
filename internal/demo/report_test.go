package demo

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"sluice/internal/load"
)

// sound is a report in which everything adds up.
func sound() Report {
	return Report{
		Gated: true, Took: 3700 * time.Millisecond,
		Shoppers: 2000, Counts: load.Counts{Requests: 6256, Admitted: 111,
			Rejected: map[string]int64{"concurrency": 4256, "sold_out": 1879}, Unknown: map[string]int64{"in_progress": 1},
			Broken: 2, Unanswered: 7,
			Home: [...]int64{load.Bought: 100, load.SoldOut: 1890, load.HadOne: 1, load.Rejected: 2, load.GaveUp: 7}},
		Answer: load.Times{Count: 6246, P99: 47.4},
		Shop:   load.Totals{Units: 101, Orders: 101, Requests: 112, PeakInFlight: 12},
	}
}

func TestReport_ThatDoesNotAddUpSaysSo(t *testing.T) {
	if err := sound().Err(); err != nil {
		t.Fatal(err)
	}
	for want, spoil := range map[string]func(*Report){
		"oversold 1: 101 orders for 100 units": func(r *Report) { r.Shop.Units, r.Shop.Oversold = 100, 1 },
		"sold twice: 1":                        func(r *Report) { r.Shop.Twice = 1 },
		"lost orders: 101":                     func(r *Report) { r.Shop.Orders = 100 },
		"count presses: asked 6257":            func(r *Report) { r.Requests++ },
		"count presses: asked 6256":            func(r *Report) { r.Rejected = map[string]int64{"concurrency": 4256} },
		"count shoppers: 1 of 2000":            func(r *Report) { r.Home[load.GaveUp]-- },
	} {
		r := sound()
		spoil(&r)
		if err := r.Err(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("it says %v, want %q", err, want)
		}
		if !strings.Contains(r.String(), "BROKEN: ") {
			t.Errorf("%q is not in the text", want)
		}
	}
}

func TestResult_PeopleAddUpToTheShoppers(t *testing.T) {
	r := sound()
	for _, rows := range [][]row{r.rows(false), r.rows(true)} {
		sum := int64(0)
		for _, one := range rows {
			if one.label == "presses of the button" {
				break
			}
			n, err := strconv.ParseInt(strings.ReplaceAll(one.value, ",", ""), 10, 64)
			if err != nil {
				t.Fatal(err)
			}
			sum += n
		}
		if sum != r.Shoppers {
			t.Errorf("the rows of people count %d of %d shoppers: %v", sum, r.Shoppers, rows)
		}
	}
}

func TestReport_NumbersAreReadable(t *testing.T) {
	for n, want := range map[int64]string{0: "0", 999: "999", 1000: "1,000", 1234567: "1,234,567", -1000: "-1,000",
		-100: "-100"} {
		if got := count(n); got != want {
			t.Errorf("%d: %s, want %s", n, got, want)
		}
	}
}
