package e2e

import (
	"bufio"
	"encoding/json"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
)

// pipelined are cases of the corpora that hold more than one good request, openly and whole: as many may arrive. Their
// judge calls all of the input broken when what comes behind those requests is.
var pipelined = []string{
	"Server Bugs#48", // two requests, each with a plain Content-Length; the bytes behind them are answered 400
}

// Collections of raw requests that others made are not part of this repository. SLUICE_CONFORMANCE names a folder with
// cases.jsonl and replay.py, which plays each case to the gate and judges what arrives at a shop of its own.
func TestNothingOfOthersCorporaArrivesDirty(t *testing.T) {
	folder := os.Getenv("SLUICE_CONFORMANCE")
	if folder == "" {
		t.Skip("SLUICE_CONFORMANCE names no folder with cases.jsonl and replay.py")
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	shop := ln.Addr().String()
	ln.Close() // replay.py listens there
	g := gate(t, "upstream.targets = "+quoted("http://"+shop), "[[route]]\nname = \"all\"\nmatch = \"/\"\ngate = \"pass\"")
	results := filepath.Join(t.TempDir(), "results.jsonl")
	_, port, _ := net.SplitHostPort(shop)
	replay := exec.CommandContext(t.Context(), "python3", filepath.Join(folder, "replay.py"), g.front, port,
		filepath.Join(folder, "cases.jsonl"), "--out", results)
	if text, err := replay.CombinedOutput(); err != nil {
		t.Fatalf("replay: %v\n%s", err, text)
	}
	verdicts := map[string]int{}
	for _, r := range replayed(t, results) {
		verdicts[r.Verdict]++
		switch {
		case r.Verdict == "DIRTY":
			t.Errorf("%s %s: %v", r.Source, r.ID, r.Violations)
		case r.Verdict == "MULTI" && !slices.Contains(pipelined, r.ID):
			t.Errorf("%s %s: arrived as %d requests", r.Source, r.ID, r.Arrived)
		case r.Verdict == "reject" && r.Client != "closed":
			t.Errorf("%s %s: refused with %v, but the connection stays open: %q", r.Source, r.ID, r.Statuses, r.Client)
		}
	}
	t.Logf("%v", verdicts)
	if verdicts["clean"] == 0 || verdicts["reject"] == 0 {
		t.Error("nothing was tried")
	}
}

// verdict is a line of what replay.py wrote.
type verdict struct {
	Source, ID, Verdict, Client string
	Statuses                    []int
	Violations                  []string
	Arrived                     int `json:"origin_msgs"`
}

func replayed(t *testing.T, path string) (all []verdict) {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	in := bufio.NewScanner(f)
	in.Buffer(nil, 1<<20)
	for in.Scan() {
		var v verdict
		if err := json.Unmarshal(in.Bytes(), &v); err != nil {
			t.Fatal(err)
		}
		all = append(all, v)
	}
	if in.Err() != nil {
		t.Fatal(in.Err())
	}
	return all
}
