package demo

import (
	"fmt"
	"strconv"
	"time"
)

// count writes n with its thousands apart: 2,000.
func count(n int64) string {
	s := strconv.FormatInt(n, 10)
	first := 0
	if n < 0 {
		first = 1
	}
	for i := len(s) - 3; i > first; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// millis writes ms milliseconds in three figures.
func millis(ms float64) string {
	switch {
	case ms < 10:
		return fmt.Sprintf("%.2f ms", ms)
	case ms < 100:
		return fmt.Sprintf("%.1f ms", ms)
	}
	return count(int64(ms+0.5)) + " ms"
}

func seconds(d time.Duration) string { return fmt.Sprintf("%.1f s", d.Seconds()) }
