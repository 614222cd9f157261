package config

import (
	"testing"
	"time"
)

func TestUnits_ReadWhatTheReferencePromises(t *testing.T) {
	for text, want := range map[string]Size{"0B": 0, "512B": 512, "16KiB": 16 << 10, "1.5KiB": 1536, "1MiB": 1 << 20,
		"1024GiB": 1 << 40} {
		if got, err := parseSize(text); err != nil || got != want {
			t.Errorf("parseSize(%q) = %v, %v; want %v", text, got, err, want)
		}
	}
	for text, want := range map[string]PerSecond{"20/s": 20, "600/m": 10, "0.5/s": 0.5, "36/h": 0.01, "5/d": 5.0 / 86400,
		"1000000000/s": 1e9} {
		if got, err := parseRate(text); err != nil || got != want {
			t.Errorf("parseRate(%q) = %v, %v; want %v", text, got, err, want)
		}
	}
	for text, want := range map[string]time.Duration{"10ms": 10 * time.Millisecond, "1m30s": 90 * time.Second,
		"2h": 2 * time.Hour, "-1s": -time.Second} {
		if got, err := parseDuration(text); err != nil || got != want {
			t.Errorf("parseDuration(%q) = %v, %v; want %v", text, got, err, want)
		}
	}
}

func TestUnits_RejectEverythingElse(t *testing.T) {
	for _, text := range []string{"", "B", "1", "-1B", "1.5B", "1 KiB", "1kib", "1KB", "1025GiB", "1e3B", "0x1B",
		"1.2.3KiB", ".KiB", "infB"} {
		if got, err := parseSize(text); err == nil {
			t.Errorf("parseSize(%q) = %v", text, got)
		}
	}
	for _, text := range []string{"", "/", "1", "1/", "/s", "1/w", "1/day", "-1/s", "0/s", "0.0/m", "1/s/s", "inf/s", "nan/s",
		"1e3/s", "0x1/s", "2000000000/s", "1 /s"} {
		if got, err := parseRate(text); err == nil {
			t.Errorf("parseRate(%q) = %v", text, got)
		}
	}
	for _, text := range []string{"", "0", "1", "1d", "1 s", "s", "1h30", "1e3s"} {
		if got, err := parseDuration(text); err == nil {
			t.Errorf("parseDuration(%q) = %v", text, got)
		}
	}
}

func TestUnits_SizePrintsAsItIsWritten(t *testing.T) {
	for _, text := range []string{"0B", "512B", "1025B", "16KiB", "1MiB", "1025KiB", "3GiB"} {
		if size, err := parseSize(text); err != nil || size.String() != text {
			t.Errorf("%q prints as %q, %v", text, size, err)
		}
	}
}

func TestUnits_RatePrintsInTheUnitInWhichItIsWhole(t *testing.T) {
	for text, want := range map[string]string{"20/s": "20/s", "600/m": "10/s", "30/m": "30/m", "0.5/s": "30/m",
		"7/h": "7/h", "5/d": "5/d", "0.5/d": "5.787037037037037e-06/s", "1000000000/s": "1000000000/s", "1.5/s": "90/m"} {
		if rate, err := parseRate(text); err != nil || rate.String() != want {
			t.Errorf("%q prints as %q, %v; want %q", text, rate, err, want)
		}
	}
}
