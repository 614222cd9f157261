package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"

	"sluice/admin"
)

type statusCommand struct {
	Watch bool        `short:"w" help:"Show it live, once a second; q or Ctrl-C ends it."`
	JSON  bool        `name:"json" help:"Print the gate's answer, for other programs."`
	At    runningGate `embed:""`
}

func (s *statusCommand) Run() error {
	to, err := s.At.open()
	if err != nil {
		return err
	}
	if s.Watch {
		return watch(to)
	}
	if s.JSON {
		var raw json.RawMessage
		if err := s.At.ask("GET", "/status", nil, &raw); err != nil {
			return err
		}
		_, err := fmt.Println(string(raw))
		return err
	}
	var told admin.Status
	if err := s.At.ask("GET", "/status", nil, &told); err != nil {
		return err
	}
	_, err = io.WriteString(os.Stdout, board{width: 200, height: 200}.draw(&told, nil, ""))
	if err == nil && !told.Ready {
		return errSaid
	}
	return err
}
