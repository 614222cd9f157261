package proxy

import (
	"testing"

	"sluice/limiter"
	"sluice/proxy/param"
	"sluice/proxy/reject"
)

// classSlots notes the class of each request.
type classSlots struct {
	slotFunc
	classes *[]int
}

func (s classSlots) Peek(class int) bool {
	*s.classes = append(*s.classes, class)
	return false
}

func (s classSlots) Acquire(_ limiter.Client, class int) reject.Reason {
	*s.classes = append(*s.classes, class)
	return reject.Admitted
}

func priorityBy(t *testing.T, text string) param.Priority {
	t.Helper()
	p, err := param.CompilePriority(text)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestPriority_IsWhatTheRequestSays(t *testing.T) {
	var classes []int
	o := options(&recorder{})
	o.Concurrency, o.Priority = classSlots{classes: &classes}, priorityBy(t, "$http_x_level")
	addr, _ := gateway(t, o)
	for _, c := range []struct {
		fields string
		want   int
	}{
		{"", 0}, {"X-Level: 7\r\n", 7}, {"X-Level: 0\r\n", 0}, {"X-Level: 12\r\n", 9},
		{"X-Level: 12345678901234567890\r\n", 9}, {"X-Level: 0000000000007\r\n", 7},
		{"X-Level: gold\r\n", 0}, {"X-Level: -1\r\n", 0}, {"X-Level: 9\r\nX-Level: 9\r\n", 0},
	} {
		classes = nil
		resp, _ := talk(t, addr, "GET /search/ HTTP/1.1\r\nHost: shop\r\nConnection: close\r\n"+c.fields+"\r\n")
		if resp.StatusCode != 200 || len(classes) != 2 || classes[0] != c.want || classes[1] != c.want {
			t.Errorf("%q: %d, classes %v, want %d", c.fields, resp.StatusCode, classes, c.want)
		}
	}
}

func TestCompilePriority_RejectsWhatIsNotKnownInTheQueue(t *testing.T) {
	for text, want := range map[string]string{
		"": "", "$http_x_level": "", "$jwt_level": "",
		"$json_level": `"$json_level" is in the body, which is not read yet in the queue: write a variable of the head`,
		"$path_x":     `$path_x: the pattern has no {x}: write {x} into match, or another variable`,
	} {
		got := ""
		if _, err := param.CompilePriority(text); err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%s: %s, want %s", text, got, want)
		}
	}
}
