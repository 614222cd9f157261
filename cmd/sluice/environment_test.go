package main

import (
	"testing"
	"time"
)

// REDIS_ADDR is the environment's word for config.toml; many machines set it for somebody else.
func TestWhatNoFileConfiguresIgnoresTheEnvironment(t *testing.T) {
	t.Setenv("REDIS_ADDR", "redis")
	if _, err := (&runCommand{From: "127.0.0.1:0", To: "http://127.0.0.1:9"}).load(); err != nil {
		t.Errorf("run --from --to: %v", err)
	}
	if err := (&demoCommand{Shoppers: new(3), Units: new(int64(2)), Patience: time.Minute, Listen: "127.0.0.1:0"}).Run(); err != nil {
		t.Errorf("demo: %v", err)
	}
}
