package main

import (
	"fmt"
	"io"
	"math"
	"strconv"
	"time"

	"sluice/config"
)

// reckonWindows says in requests a second what the windows admit, of one instance and of all.
func reckonWindows(w io.Writer, c *config.Config) {
	window, crew := c.Limits.Window, c.Fleet
	whose := "this instance"
	if window.Scope == "fleet" {
		whose = "all instances together"
	}
	fmt.Fprintf(w, "window    %s of %s: all SKUs %s, one SKU %s; a burst across a boundary may reach twice a window's\n",
		window.Size, whose, perSecond(window.Max, window.Size), perSecond(window.MaxPerSKU, window.Size))
	counts := []int{2, 3}
	if crew.Instances > 0 {
		counts = []int{crew.Instances}
	}
	switch {
	case window.Scope == "fleet" && crew.Instances == 0:
		fmt.Fprintf(w, "fleet     %q: instances are counted by heartbeats in Redis, at %s; one that starts admits nothing until it is counted, at most some 3s\n", crew.Name, c.Stock.Redis.Addresses[0])
	case window.Scope != "fleet" && crew.Instances == 0:
		fmt.Fprintf(w, "fleet     each instance has all of that: n of them admit n times as much; limits.window.scope = \"fleet\" divides it\n")
	}
	for _, n := range counts {
		if window.Scope == "fleet" {
			fmt.Fprintf(w, "fleet     each of %d: all SKUs %s, one SKU %s\n", n, partOf(window.Max, n, window.Size), partOf(window.MaxPerSKU, n, window.Size))
		} else if crew.Instances > 0 {
			fmt.Fprintf(w, "fleet     %d instances together: all SKUs %s, one SKU %s\n", n, perSecond(n*window.Max, window.Size), perSecond(n*window.MaxPerSKU, window.Size))
		}
	}
	if window.WarmUp > 0 {
		fmt.Fprintf(w, "warm-up   a tenth of that at a SKU's first admission, and after 10m without one; the whole after %s\n", window.WarmUp)
	}
}

func perSecond(perWindow int, size time.Duration) string {
	if perWindow == 0 {
		return "no cap"
	}
	return fmt.Sprintf("%d a window = %d/s", perWindow, int64(perWindow)*int64(time.Second)/int64(size))
}

// partOf is what falls to one of n instances: where it does not come out even, more and less in turn.
func partOf(perWindow, n int, size time.Duration) string {
	if perWindow == 0 {
		return "no cap"
	}
	part := fmt.Sprint(perWindow / n)
	if perWindow%n != 0 {
		part += fmt.Sprintf(" or %d", perWindow/n+1)
	}
	perSecond := float64(perWindow) * float64(time.Second) / float64(size) / float64(n)
	return fmt.Sprintf("%s a window = %s/s", part, strconv.FormatFloat(math.Round(perSecond*10)/10, 'f', -1, 64))
}
