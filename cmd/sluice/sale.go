package main

import (
	"context"
	"fmt"
	"os"
	"strings"
	"time"

	"sluice/admin"
)

type saleCommand struct {
	Where where `embed:""`

	List   saleList   `cmd:"" help:"Show all sales."`
	Pause  salePause  `cmd:"" help:"Stop selling what a sale sells, for now, on all instances. Orders under way are settled."`
	Resume saleResume `cmd:"" help:"Go on."`
	End    saleEnd    `cmd:"" help:"End a sale before its time, on all instances."`
}

type saleList struct{}

type salePause struct {
	Name string `arg:"" name:"name"`
}

type saleResume struct {
	Name string `arg:"" name:"name"`
}

type saleEnd struct {
	Name string `arg:"" name:"name"`
}

func (saleList) Run(s *saleCommand) error {
	var all struct{ Sales []admin.Sale }
	if err := s.call("GET", "", nil, &all); err != nil {
		return err
	}
	for _, one := range all.Sales {
		fmt.Println(saleLine(one))
	}
	if len(all.Sales) == 0 {
		fmt.Fprintln(os.Stderr, "no sale is configured")
	}
	return nil
}

func (p salePause) Run(s *saleCommand) error  { return s.turn(p.Name, "paused") }
func (r saleResume) Run(s *saleCommand) error { return s.turn(r.Name, "on") }
func (e saleEnd) Run(s *saleCommand) error    { return s.turn(e.Name, "ended") }

func (s *saleCommand) turn(name, state string) error {
	var now admin.Sale
	if err := s.call("POST", "/"+segment(name), map[string]any{"state": state}, &now); err != nil {
		return err
	}
	fmt.Println(saleLine(now))
	return nil
}

func (s *saleCommand) call(method, path string, in, out any) error {
	ctx, cancel := context.WithTimeout(context.Background(), operateWithin)
	defer cancel()
	to, done, err := s.Where.open()
	if err != nil {
		return err
	}
	defer done()
	return to.call(ctx, method, "/sales"+path, in, out)
}

func saleLine(s admin.Sale) string {
	return fmt.Sprintf("%s\t%s\t%s to %s\t%s", s.Name, s.State, s.Starts.Format(time.RFC3339), s.Ends.Format(time.RFC3339), strings.Join(s.SKUs, " "))
}
