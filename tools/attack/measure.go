package main

import (
	"sync"
	"time"

	"sluice/internal/load"
)

// pss is the memory of p in MiB, shared pages counted in part (PSS); 0 when it has gone.
func (p *peer) pss() float64 {
	bytes, _ := load.PSS(p.PIDs())
	return float64(bytes) / (1 << 20)
}

// cpu is the processor time that p has used; 0 when it has gone.
func (p *peer) cpu() time.Duration {
	used, _ := load.CPU(p.PIDs())
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
