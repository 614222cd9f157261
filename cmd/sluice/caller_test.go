package main

import (
	"log/slog"
	"net/http"
	"path/filepath"
	"testing"

	"sluice/admin"
	"sluice/stockgate"
)

// ops.listen and admin.listen may be unix sockets: then those who ask must find them there.
func TestAGateOnUnixSocketsCanBeAsked(t *testing.T) {
	at := "unix:" + filepath.Join(t.TempDir(), "gate.sock")
	ln, err := listenOn(at, false)
	if err != nil {
		t.Fatal(err)
	}
	memory := stockgate.NewMemory()
	api := admin.API{Store: store{memory, memory}, Log: slog.New(slog.DiscardHandler)}
	mux := http.NewServeMux()
	mux.Handle("/api/", api.Handler())
	mux.HandleFunc("/livez", func(http.ResponseWriter, *http.Request) {})
	server := &http.Server{Handler: mux}
	go server.Serve(ln)
	t.Cleanup(func() { server.Close() })

	if err := (&healthcheckCommand{Ops: at}).Run(); err != nil {
		t.Errorf("healthcheck: %v", err)
	}
	if err := (&stockSet{SKU: "1001", Left: 3}).Run(&stockCommand{Where: where{Admin: at}}); err != nil {
		t.Errorf("stock set: %v", err)
	}
	if left, err := memory.Add(t.Context(), "1001", 0); err != nil || left != 3 {
		t.Errorf("the stock is %d, %v; want 3", left, err)
	}
}
