package proxy

import (
	"testing"

	"sluice/limiter"
	"sluice/proxy/param"
	"sluice/proxy/reject"
)

// prioritySlots notes whether a request goes first.
type prioritySlots struct {
	slotFunc
	first *[]bool
}

func (s prioritySlots) Peek(first bool) bool {
	*s.first = append(*s.first, first)
	return false
}

func (s prioritySlots) Acquire(_ limiter.Client, first bool) reject.Reason {
	*s.first = append(*s.first, first)
	return reject.Admitted
}

func priorityBy(t *testing.T, text string) *param.Condition {
	t.Helper()
	c, err := param.CompilePriority(text)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestPriority_RequestsThatMeetTheConditionGoFirst(t *testing.T) {
	var got []bool
	o := options(&recorder{})
	o.Concurrency, o.Priority = prioritySlots{first: &got}, priorityBy(t, "$http_x_level=vip")
	addr, _ := gateway(t, o)
	for fields, want := range map[string]bool{
		"": false, "X-Level: vip\r\n": true, "X-Level: gold\r\n": false, "X-Level: vip\r\nX-Level: vip\r\n": false,
	} {
		got = nil
		resp, _ := talk(t, addr, "GET /search/ HTTP/1.1\r\nHost: shop\r\nConnection: close\r\n"+fields+"\r\n")
		if resp.StatusCode != 200 || len(got) != 2 || got[0] != want || got[1] != want {
			t.Errorf("%q: %d, first %v, want %v", fields, resp.StatusCode, got, want)
		}
	}
}

func TestCompilePriority_RejectsWhatIsNotKnownInTheQueue(t *testing.T) {
	for text, want := range map[string]string{
		"": "", "$http_x_level=vip": "", "$jwt_level>=2": "",
		"$jwt_level": `"$jwt_level" is no condition; write which requests go first, like "$jwt_level=vip"`,
		"$json_level=1": `"$json_level" is in the body, which is not read yet in the queue: write a variable of the ` +
			"head",
		"$path_x=1": `$path_x: the pattern has no {x}: write {x} into match, or another variable`,
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
