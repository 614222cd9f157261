package config

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestDiff_NamesEveryKeyThatDiffers(t *testing.T) {
	a, b := Default(), Default()
	if keys := Diff(a, b); len(keys) > 0 {
		t.Errorf("equal configurations differ in %v", keys)
	}
	b.Mode, b.Limits.Window.Max, b.Responses.Classes.Busy.Status = "observe", 7, 503
	b.Routes = []Route{{Name: "x"}}
	b.Server.TLS = &TLS{CertFile: "a"}
	want := []string{"mode", "server.tls", "limits.window.max", "route", "responses.classes.busy.status"}
	if d := cmp.Diff(want, Diff(a, b)); d != "" {
		t.Errorf("keys (-want +got):\n%s", d)
	}
}
