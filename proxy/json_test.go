package proxy

import (
	"strings"
	"testing"

	"github.com/valyala/fastjson"
)

func TestJSONIsReadAsDeepAsItsParserGoes(t *testing.T) {
	nested := func(n int, within string) []byte {
		return []byte(strings.Repeat("[", n) + within + strings.Repeat("]", n))
	}
	for _, tt := range []struct {
		body []byte
		want bool
	}{
		{nested(fastjson.MaxDepth, ""), true},
		{nested(fastjson.MaxDepth+1, ""), false},
		{nested(9, `"\\\"`+strings.Repeat("[{", fastjson.MaxDepth)+`"`), true},
		{[]byte("[" + strings.Repeat("[],{},", fastjson.MaxDepth) + "1]"), true},
	} {
		if got := (&request{body: tt.body}).parseJSON(); got != tt.want {
			t.Errorf("%.40s, %d bytes: %v", tt.body, len(tt.body), got)
		}
	}
}

// What is nested without end costs no more than to see it.
func TestJSONThatIsNestedWithoutEndIsCheap(t *testing.T) {
	for _, open := range []string{"[", `{"a":`, `[[],`} {
		body := []byte(strings.Repeat(open, 1000))
		if n := testing.AllocsPerRun(1, func() { (&request{body: body}).parseJSON() }); n > 10 {
			t.Errorf("%s: %v allocations", open, n)
		}
	}
}
