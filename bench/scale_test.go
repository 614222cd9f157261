package main

import (
	"encoding/xml"
	"errors"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// There is not a number here that a slow machine could miss: gates must give the answers of each load, and all of them
// must be counted.
func TestQuickLookAtScaleMeasuresWhatItSays(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes about 15 s")
	}
	t.Parallel()
	dir := t.TempDir()
	args := []string{"-quick", "-only", "connections,routes,sale,idle", "-out", dir}
	s, err := readScale(args)
	if err != nil {
		t.Fatal(err)
	}
	if missing := s.field.missing(); missing != "" {
		t.Skip(missing)
	}
	if err := runScale(t.Context(), args); err != nil {
		t.Fatal(err)
	}
	spots, err := s.kept()
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range s.axes {
		if n := len(of(spots, a)); n < len(a.steps)-6 || n == 0 { // a peer may be missing
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

// What costs are made of is found again, as far as the points tell.
func TestModelFindsThePricesThatCostsWereMadeOf(t *testing.T) {
	l := gateLaw()
	l.price = make([]float64, len(l.terms))
	want := map[string]float64{"refused": 10, "page": 20, "order": 30, "idle": 0.5, "alive": 2000}
	for k, term := range l.terms {
		l.price[k] = want[term.name]
	}
	var points []observed
	for _, change := range []func(*load){
		func(l *load) { l.GonePart = 100 },
		func(l *load) { l.GonePart, l.Connections = 100, 10_000 },
		func(l *load) { l.PagePart = 100 },
		func(l *load) { l.PagePart, l.Keys = 100, 100_000 },
		func(l *load) { l.OrderPart = 100 },
		func(l *load) { l.OrderPart, l.Underway = 100, 512 },
		func(l *load) { l.OrderPart, l.Open = 100, 100 },
		func(l *load) { l.GonePart, l.Gone = 100, 1000 },
		func(l *load) { l.GonePart, l.Routes = 100, 100 },
		func(l *load) { l.Underway = 0 },
		func(l *load) { l.Underway, l.Open, l.Instances = 0, 100, 4 },
	} {
		g := given{load: usual().with(change), requests: 50_000, seconds: 1, batching: batching{slope{0.25, 0.5}, 4}}
		if g.Underway == 0 {
			g.requests = 0
		}
		points = append(points, observed{g, l.predict(g)})
	}
	l.fit(points)
	for _, p := range points {
		if off := l.predict(p.given)/p.value - 1; math.Abs(off) > 0.02 {
			t.Errorf("%+v: %.3f off", p.load, off)
		}
	}
	mixed := given{load: usual().with(func(l *load) { l.GonePart, l.PagePart, l.OrderPart, l.Connections = 60, 30, 10, 700 }),
		requests: 30_000, seconds: 1, batching: batching{slope{0.25, 0.5}, 4}}
	got := l.predict(mixed)
	fitted := l.price
	for k, term := range l.terms {
		fitted[k] = want[term.name]
	}
	if off := got/l.predict(mixed) - 1; math.Abs(off) > 0.05 {
		t.Errorf("a mixture is predicted %.3f off", off)
	}
}

func TestStraightLineIsFoundAgain(t *testing.T) {
	got := straight([]float64{1, 10, 100}, []float64{0.75, 3, 25.5})
	if math.Abs(got.rise-0.25) > 1e-9 || math.Abs(got.start-0.5) > 1e-9 {
		t.Errorf("got %+v", got)
	}
}

// A point whose load was changed begins anew: its older rounds were of something else.
func TestRoundsOfAnotherLoadAreDropped(t *testing.T) {
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

func TestScaleRefusesWhatThereIsNot(t *testing.T) {
	for _, args := range []string{"-only=conections", "-rounds=-1", "-span=0", "-span=fast", "-quicker"} {
		if _, err := readScale([]string{args}); err == nil {
			t.Errorf("%s is taken", args)
		}
	}
}

func TestCurvesAreXML(t *testing.T) {
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
