package main

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"
)

// pids are the process of p and its children.
func (p *peer) pids() []int {
	all := []int{p.process.Process.Pid}
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", all[0], all[0]))
	if err != nil {
		return all
	}
	for _, word := range strings.Fields(string(text)) {
		if pid, err := strconv.Atoi(word); err == nil {
			all = append(all, pid)
		}
	}
	return all
}

// pss is the memory of p in MiB, shared pages counted in part (PSS).
func (p *peer) pss() (mib float64) {
	for _, pid := range p.pids() {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/smaps_rollup", pid))
		if err != nil {
			continue
		}
		for line := range strings.Lines(string(text)) {
			if value, ok := strings.CutPrefix(line, "Pss:"); ok {
				kib, _ := strconv.ParseFloat(strings.Fields(value)[0], 64)
				mib += kib / 1024
			}
		}
	}
	return mib
}

// cpu is the processor time that p has used.
func (p *peer) cpu() (used time.Duration) {
	for _, pid := range p.pids() {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if err != nil {
			continue
		}
		fields := bytes.Fields(text[bytes.LastIndexByte(text, ')')+1:])
		for _, f := range fields[11:13] { // utime, stime
			ticks, _ := strconv.ParseInt(string(f), 10, 64)
			used += time.Duration(ticks) * 10 * time.Millisecond
		}
	}
	return used
}

// watchMemory samples pss until the function that it returns is called, which tells the largest.
func (p *peer) watchMemory() (most func() float64) {
	ended, result := make(chan struct{}), make(chan float64)
	go func() {
		most := 0.0
		tick := time.NewTicker(100 * time.Millisecond)
		defer tick.Stop()
		for {
			most = max(most, p.pss())
			select {
			case <-ended:
				result <- most
				return
			case <-tick.C:
			}
		}
	}()
	return sync.OnceValue(func() float64 { close(ended); return <-result })
}
