package gateway

import (
	"math/rand/v2"
	"testing"
	"time"

	"sluice/admin"
	"sluice/internal/redistest"
	"sluice/internal/testkit"
)

// Whatever operators do on instances whose links break off at any step: when all is over, nothing is paused.
func TestFleetPause_RandomFaultsLeaveNothingPaused(t *testing.T) {
	t.Parallel()
	testkit.Nightly(t, "its faults are random, and it runs long")
	server := redistest.Start(t)
	whole := joined(t, server, "")
	stocked(t, whole)
	var gates []*Gateway
	var links []*link
	for range 3 {
		g, l := through(t, server, "")
		gates, links = append(gates, g), append(links, l)
	}
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 1))
	words := []string{putWords, removeWords, ledgerWords, "-- beat says"}
	failed, made := 0, 0
	for range 60 {
		i := r.IntN(len(gates))
		switch word := words[r.IntN(len(words))]; r.IntN(3) {
		case 0:
			links[i].cut(word)
		case 1:
			links[i].lose(word)
		}
		h := gates[i].controller
		all := h.Overrides()
		var err error
		if len(all) > 0 && r.IntN(2) == 0 {
			_, err = h.Undo(t.Context(), all[0].ID)
		} else {
			_, err = h.Override(t.Context(), admin.Override{SKU: "1001", Value: []any{"paused", "ended"}[r.IntN(2)],
				Until: time.Now().Add(time.Duration(1+r.IntN(3)) * time.Second)})
		}
		if made++; err != nil {
			failed++
		}
		if r.IntN(3) == 0 {
			time.Sleep(time.Duration(r.IntN(150)) * time.Millisecond) // so that beats and ends come between
		}
		links[i].mend()
	}
	t.Logf("%d of %d failed", failed, made)
	testkit.Eventually(t, "all overrides have ended", func() bool {
		for _, g := range append(gates, whole) {
			if len(g.controller.Overrides()) > 0 {
				return false
			}
		}
		return true
	})
	becomes(t, "on", 0, append(gates, whole)...)
	time.Sleep(2 * time.Second) // what was under way
	becomes(t, "on", 0, append(gates, whole)...)
}
