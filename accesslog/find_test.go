package accesslog

import (
	"bytes"
	"io"
	"strings"
	"testing"

	"sluice/proxy/metrics"
	"sluice/proxy/reject"
)

// remembering writes records and keeps the Log.
func remembering(t *testing.T, set func(*Options), records ...metrics.AccessRecord) *Log {
	t.Helper()
	l := logTo(t, io.Discard, set)
	l.Start(none)
	for _, e := range records {
		l.Log(e)
	}
	l.Close()
	return l
}

func TestFind_SelectsByIDOrByUserAndSKU(t *testing.T) {
	one, two, three := testRecord(reject.SoldOut), testRecord(reject.Window), testRecord(reject.Rate)
	two.ID, three.ID, three.SKU = []byte("r-2"), []byte("r-3"), []byte("1002")
	three.User = []byte(`","sku":"1001`) // tries to match another query
	l := remembering(t, func(o *Options) { o.Output = "off" }, one, two, three)
	for _, tt := range []struct {
		q    Question
		want string
	}{
		{Question{RequestID: "r-2"}, "window"},
		{Question{RequestID: "r-"}, ""},
		{Question{User: "user-seven", SKU: "1001"}, "window sold_out"},
		{Question{User: "user-seven", SKU: "1002"}, ""},
		{Question{User: "user-seve", SKU: "1001"}, ""},
		{Question{User: string(three.User), SKU: "1002"}, "rate"},
		{Question{RequestID: "r-1", User: "user-seven", SKU: "1001"}, "sold_out"},
		{Question{}, ""},
	} {
		var got []string
		a := l.Find(tt.q, 10)
		for _, line := range a.Lines {
			_, rest, _ := bytes.Cut(line, []byte(`"reason":"`))
			reason, _, _ := bytes.Cut(rest, []byte(`"`))
			got = append(got, string(reason))
		}
		if strings.Join(got, " ") != tt.want {
			t.Errorf("%+v: %q, want %q", tt.q, got, tt.want)
		}
		if tt.q != (Question{}) && a.Since.IsZero() {
			t.Errorf("%+v: Since is not set", tt.q)
		}
	}
	if a := l.Find(Question{User: "user-seven", SKU: "1001"}, 1); len(a.Lines) != 1 ||
		!bytes.Contains(a.Lines[0], []byte("r-2")) {
		t.Errorf("the newest is %s", a.Lines)
	}
}

func BenchmarkFind(b *testing.B) {
	l := logTo(b, io.Discard, func(o *Options) { o.Output, o.Remember = "off", 8<<20 })
	n := 0
	for e := testRecord(reject.SoldOut); len(l.recent.pages) <= 8<<20/pageSize-1; n++ {
		l.Log(e)
	}
	b.ReportMetric(float64(n), "records")
	for b.Loop() {
		l.Find(Question{RequestID: "unknown"}, 100)
	}
}
