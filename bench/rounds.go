package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
)

// A run may be taken in pieces, where the machine cannot be had alone for a quarter of an hour: each adds its rounds to a file.

// row is a cell as the file has it.
type row struct {
	Scenario    string   `json:"scenario"`
	Gate        string   `json:"gate"`
	Connections int      `json:"connections"`
	Rounds      []sample `json:"rounds"`
}

// kept reads the rounds of earlier pieces; none where there is no file yet.
func (p plan) kept() (results, error) {
	r := results{}
	if p.rounded == "" {
		return r, nil
	}
	text, err := os.ReadFile(p.rounded)
	if errors.Is(err, fs.ErrNotExist) {
		return r, nil
	}
	var rows []row
	if err == nil {
		err = json.Unmarshal(text, &rows)
	}
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", p.rounded, err)
	}
	for _, each := range rows {
		r[cell{each.Scenario, each.Gate, each.Connections}] = each.Rounds
	}
	return r, nil
}

// writeRounds writes all rounds.
func (p plan) writeRounds(r results) error {
	if p.rounded == "" {
		return nil
	}
	var rows []row
	for _, scenario := range append(names(scenarios()), extraNames()...) {
		for _, c := range cellsOf(r, scenario) {
			rows = append(rows, row{c.scenario, c.gate, c.connections, r[c]})
		}
	}
	text, err := json.MarshalIndent(rows, "", "\t")
	if err != nil {
		return err
	}
	return os.WriteFile(p.rounded, append(text, '\n'), 0o644)
}
