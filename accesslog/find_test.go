package accesslog

import (
	"bytes"
	"fmt"
	"io"
	"strconv"
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

func TestRecent_MemoryDoesNotGrow(t *testing.T) {
	var r recent
	r.resize(3 * pageSize)
	line := func(i int) []byte {
		return fmt.Appendf(nil, "{\"n\":%d,%s}\n", i, strings.Repeat(" ", 1000))
	}
	const lines = 10_000
	for i := range lines {
		r.add(line(i))
	}
	held := 0
	for _, p := range r.pages {
		held += cap(p)
	}
	if held > 3*pageSize {
		t.Errorf("%d bytes are held, more than three pages", held)
	}
	known := func(i int) bool {
		found, _ := r.newest(1, []byte("{\"n\":"+strconv.Itoa(i)+","))
		return len(found) == 1
	}
	if !known(lines-1) || !known(lines-2000) || known(0) {
		t.Error("not the newest lines are remembered")
	}
	r.resize(pageSize)
	if !known(lines-1) || known(lines-2000) || len(r.pages) != 1 {
		t.Error("a smaller memory keeps other than the newest lines")
	}
	r.resize(0)
	r.add(line(1))
	if known(1) || known(lines-1) || len(r.pages) != 0 {
		t.Error("no memory remembers")
	}
}

// The writer adds lines during a search. The pages that the search has not reached stay whole, or are left out.
func TestRecent_WriterAddsLinesDuringASearch(t *testing.T) {
	const pages = 4
	line := func(page int) []byte {
		return append(bytes.Repeat([]byte{byte('a' + page)}, pageSize-1), '\n')
	}
	for name, tt := range map[string]struct {
		added int // lines of one page, during the search of each page
		want  string
	}{
		"none":             {0, "dcba"},
		"a page each time": {1, "dc"},
		"all are replaced": {pages, "d"},
	} {
		t.Run(name, func(t *testing.T) {
			var r recent
			r.resize(pages * pageSize)
			for i := range pages {
				r.add(line(i))
			}
			next, got := pages, ""
			for page := range r.newestPages() {
				if !r.mu.TryLock() {
					t.Fatal("the search holds the writer")
				}
				r.mu.Unlock()
				for range tt.added {
					r.add(line(next))
					next++
				}
				got += string(page[:1])
				if !bytes.Equal(page, line(int(page[0]-'a'))) {
					t.Errorf("page %c is not whole", page[0])
				}
			}
			if got != tt.want {
				t.Errorf("pages %q were searched, want %q", got, tt.want)
			}
		})
	}
}

// Searches beside a writer find whole lines, each once, the newest first.
func TestRecent_SearchesBesideAWriterFindWholeLines(t *testing.T) {
	const lines, format = 10_000, "{\"n\":%08d,\"pad\":\"%01000d\"}\n"
	var r recent
	r.resize(3 * pageSize)
	written := make(chan struct{})
	go func() {
		defer close(written)
		for i := range lines {
			r.add(fmt.Appendf(nil, format, i, i))
		}
	}()
	for searching := true; searching; {
		select {
		case <-written:
			searching = false // this search is the last
		default:
		}
		found, _ := r.newest(lines, []byte(`{"n":`))
		for before := lines; len(found) > 0; found = found[1:] {
			var n int
			if _, err := fmt.Sscanf(string(found[0]), "{\"n\":%d,", &n); err != nil || n >= before ||
				string(found[0])+"\n" != fmt.Sprintf(format, n, n) {
				t.Errorf("after line %d: %.40q", before, found[0])
			}
			before = n
		}
	}
	<-written
}

func BenchmarkFind(b *testing.B) {
	l := logTo(b, io.Discard, func(o *Options) { o.Remember = 32 << 20 })
	e := testRecord(reject.SoldOut)
	line := l.appendLine(nil, &e, 0)
	for range (32 << 20) / len(line) {
		l.recent.add(line)
	}
	b.ReportMetric(float64((32<<20)/len(line)), "lines")
	for b.Loop() {
		l.Find(Question{RequestID: "unknown"}, 100)
	}
}
