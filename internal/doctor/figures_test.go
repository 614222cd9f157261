package doctor

import "testing"

func TestFigures_PartsAreToldAsTheyFall(t *testing.T) {
	for _, c := range []struct {
		perWindow, n int
		want         string
	}{{0, 3, "no cap"}, {20, 4, "5 a window = 500/s"}, {20, 3, "6 or 7 a window = 666.7/s"},
		{1, 3, "0 or 1 a window = 33.3/s"}} {
		if got := partOf(c.perWindow, c.n, 10e6); got != c.want {
			t.Errorf("%d among %d: %q, want %q", c.perWindow, c.n, got, c.want)
		}
	}
}
