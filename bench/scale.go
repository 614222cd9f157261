package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// scale is a run that looks how cost grows. It may be taken in pieces: the rounds are kept in a file, and each run adds
// its own.
type scale struct {
	rounds  int
	span    time.Duration // of each measurement
	axes    []axis
	small   bool
	out     string // the folder for scale.json, SCALE.md and the plots; "" = none
	command string
	field   plan
	targets string // the file; "" = nothing is judged
}

// readScale reads the command line behind the word scale.
func readScale(args []string) (scale, error) {
	s := scale{command: strings.TrimSpace("cd bench && go run . scale " + strings.Join(args, " "))}
	flags := flag.NewFlagSet("bench scale", flag.ContinueOnError)
	flags.BoolVar(&s.small, "quick", false,
		"one short round of two points an axis, to see that it works; nothing is judged")
	flags.IntVar(&s.rounds, "rounds", 5, "rounds; each measures every point once. 0 = only report what was kept")
	flags.DurationVar(&s.span, "span", 850*time.Millisecond, "how long one point is measured; with what is settled "+
		"behind it a second, in which each instance looks after its ledgers once")
	only := flags.String("only", "all", "axes: "+strings.Join(names(axes(true)), ","))
	curve := flags.String("curve", "", "only curves whose name has this in it")
	at := flags.Float64("at", 0, "only points at this number; 0 = all")
	flags.StringVar(&s.field.binary, "binary", "", "a built sluice, rather than one built now")
	flags.StringVar(&s.field.profiles, "profiles", "",
		"folder for a CPU profile of Sluice at each point, named for its instant")
	flags.StringVar(&s.targets, "targets", "", "file of what may grow by how much; exit code 1 when it grew by more")
	flags.StringVar(&s.out, "out", "",
		"folder for scale.json, which keeps the rounds of earlier runs, SCALE.md and the plots")
	if err := flags.Parse(args); err != nil {
		return scale{}, err
	}
	if s.small {
		s.rounds, s.span, s.targets = min(s.rounds, 1), 100*time.Millisecond, ""
	}
	if s.rounds < 0 || s.span <= 0 {
		return scale{}, errors.New("read the flags: -span is above 0, -rounds at least 0")
	}
	some, err := pick("only", *only, names(axes(s.small)))
	for _, a := range axes(s.small) {
		a.steps = slices.DeleteFunc(a.steps, func(st step) bool {
			return !strings.Contains(st.curve, *curve) || *at != 0 &&
				st.at != *at
		})
		if slices.Contains(some, a.name) {
			s.axes = append(s.axes, a)
		}
	}
	s.field.gates = names(gateKinds())
	return s, err
}

// spot is one point as it is kept.
type spot struct {
	Axis   string  `json:"axis"`
	Curve  string  `json:"curve"`
	At     float64 `json:"at"`
	Load   load    `json:"load"`
	Rounds []cost  `json:"rounds"`
}

// runScale measures and reports.
func runScale(ctx context.Context, args []string) error {
	s, err := readScale(args)
	if err != nil {
		return err
	}
	if missing := s.field.missing(); missing != "" {
		fmt.Printf("bench: left out: %s\n", missing)
		return nil
	}
	spots, err := s.kept()
	if err != nil {
		return err
	}
	var failed error
	if s.rounds > 0 {
		if spots, failed = s.measure(ctx, spots); spots == nil {
			return failed
		}
	}
	return errors.Join(s.report(spots), failed)
}

// briefSpan is how long a point of a brief axis is measured.
const briefSpan = 400 * time.Millisecond

// measure adds its rounds to the spots; nil where it was interrupted. Its error names the points that were not
// measured. Within an axis points take turns, so that what changes on the machine changes for all.
func (s *scale) measure(ctx context.Context, spots []spot) ([]spot, error) {
	f, err := newField(s.field)
	if err != nil {
		return nil, err
	}
	defer f.close()
	if err := f.prepare(ctx); err != nil {
		return nil, err
	}
	y, err := newYardstick()
	if err != nil {
		return nil, err
	}
	defer y.close()
	var failed []error
	for _, a := range s.axes {
		for round := range s.rounds {
			for i := range a.steps {
				st := a.steps[(i+round)%len(a.steps)]
				if st.load.Gate != "sluice" && len(f.contenders([]string{st.load.Gate}, false)) == 0 {
					continue
				}
				span := s.span
				if a.brief {
					span = min(span, briefSpan)
				}
				c, err := y.measured(func() (cost, error) { return f.price(ctx, st.load, span) })
				if ctx.Err() != nil {
					return nil, errors.New("interrupted")
				}
				if err != nil { // the others are worth to be measured all the same
					failed = append(failed, fmt.Errorf("%s, %s at %g: %w", a.name, st.curve, st.at, err))
					fmt.Fprintln(os.Stderr, "bench:", failed[len(failed)-1])
					continue
				}
				spots = add(spots, a.name, st, c)
				fmt.Fprintf(os.Stderr, "%-11s %-26s %8g  %s\n", a.name, st.curve, st.at, c)
			}
			if err := s.writeRounds(spots); err != nil {
				return nil, err
			}
		}
	}
	return spots, errors.Join(failed...)
}

func (c cost) String() string {
	n := max(c.Requests, 1)
	return fmt.Sprintf("%8.0f requests/s  gates %7.2f µs  redis %6.2f µs  calls %8.5f a request; %7.0f µs, %7.0f µs, "+
		"%6.0f a second; yardstick %5.2f µs",
		c.Requests/c.Seconds, c.Gates/n, c.Redis/n, c.Calls/n, c.Gates/c.Seconds, c.Redis/c.Seconds, c.Calls/c.Seconds,
		c.Yardstick)
}

// add puts a round to its spot. Rounds of a load that is no longer that of the point are dropped.
func add(spots []spot, axis string, st step, c cost) []spot {
	for i := range spots {
		o := &spots[i]
		if o.Axis == axis && o.Curve == st.curve && o.At == st.at {
			if o.Load != st.load {
				o.Load, o.Rounds = st.load, nil
			}
			o.Rounds = append(o.Rounds, c)
			return spots
		}
	}
	return append(spots, spot{axis, st.curve, st.at, st.load, []cost{c}})
}

// kept are the rounds of earlier runs; none where there is no file yet.
func (s *scale) kept() (spots []spot, err error) {
	if s.out == "" {
		return nil, nil
	}
	text, err := os.ReadFile(s.file())
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err == nil {
		err = json.Unmarshal(text, &spots)
	}
	if err != nil {
		return nil, fmt.Errorf("read the rounds that were kept: %w", err)
	}
	return spots, nil
}

func (s *scale) file() string { return filepath.Join(s.out, "scale.json") }

// writeRounds writes all rounds, each on a line of its own.
func (s *scale) writeRounds(spots []spot) error {
	if s.out == "" {
		return nil
	}
	var out strings.Builder
	for i, o := range spots {
		text, err := json.Marshal(o)
		if err != nil {
			return err
		}
		out.WriteString(map[bool]string{true: "[\n", false: ",\n"}[i == 0] + string(text))
	}
	return os.WriteFile(s.file(), []byte(out.String()+"\n]\n"), 0o644)
}
