package main

import (
	"encoding/xml"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// There is not a number here that a slow machine could miss: gates must give the answers of each load, and all of them
// must be counted.
func TestScale_QuickLookAtScaleMeasuresWhatItSays(t *testing.T) {
	nightly(t)
	t.Parallel()
	dir := t.TempDir()
	args := []string{"-quick", "-only", "connections,routes,sale,idle", "-out", dir}
	s, err := readScale(args)
	if err != nil {
		t.Fatal(err)
	}
	needs(t, s.field.missing())
	if err := runScale(t.Context(), args); err != nil {
		t.Fatal(err)
	}
	spots, err := s.kept()
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range s.axes {
		if n := len(spotsOf(spots, a)); n < len(a.steps)-6 || n == 0 { // a peer may be missing
			t.Errorf("%s: %d of %d points were measured", a.name, n, len(a.steps))
		}
	}
	for _, o := range spots {
		c := o.Rounds[0]
		switch {
		case c.Gates <= 0 || c.Seconds <= 0:
			t.Errorf("%s, %s at %g: nothing was used in %+v", o.Axis, o.Curve, o.At, c)
		case o.Axis == "sale" && (c.Orders != float64(o.Load.Units) || c.Requests != float64(o.Load.Requests)):
			t.Errorf("%s: %g of %d units were sold to %g of %d", o.Curve, c.Orders, o.Load.Units, c.Requests, o.Load.Requests)
		case o.Load.Underway == 0 && c.Calls == 0:
			t.Errorf("%s, %s at %g: Redis was never called", o.Axis, o.Curve, o.At)
		}
	}
	text, err := os.ReadFile(filepath.Join(dir, "SCALE.md"))
	if err != nil || !strings.Contains(string(text), "scale-connections.svg") {
		t.Errorf("SCALE.md: %v\n%s", err, text)
	}
}

// A point whose load was changed begins anew: its older rounds were of something else.
func TestScale_RoundsOfAnotherLoadAreDropped(t *testing.T) {
	st := step{"sold out", 1, usual()}
	spots := add(add(nil, "skus", st, cost{Requests: 1}), "skus", st, cost{Requests: 2})
	if len(spots) != 1 || len(spots[0].Rounds) != 2 {
		t.Fatalf("got %+v", spots)
	}
	st.load.Connections = 128
	if spots = add(spots, "skus", st, cost{Requests: 3}); len(spots) != 1 || len(spots[0].Rounds) != 1 {
		t.Errorf("got %+v", spots)
	}
}

func TestScale_RefusesWhatThereIsNot(t *testing.T) {
	for _, args := range []string{"-only=conections", "-rounds=-1", "-span=0", "-span=fast", "-quicker"} {
		if _, err := readScale([]string{args}); err == nil {
			t.Errorf("%s is taken", args)
		}
	}
}

func TestScale_CurvesAreXML(t *testing.T) {
	picture := string(draw("a & b", "SKUs", "µs", []drawn{
		{"one < two", []mark{{1, 2, 3, 4}, {100, 3, 4, 5}, {100_000, 4, 5, 6}}}, {"alone", []mark{{1, 1, 1, 1}}}}))
	for d := xml.NewDecoder(strings.NewReader(picture)); ; {
		_, err := d.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatalf("%v in\n%s", err, picture)
		}
	}
	for _, want := range []string{"one &lt; two", ">100,000<", ">alone<"} {
		if !strings.Contains(picture, want) {
			t.Errorf("%q is missing in\n%s", want, picture)
		}
	}
	if draw("nothing", "", "", nil) != nil {
		t.Error("nothing has a plot")
	}
}
