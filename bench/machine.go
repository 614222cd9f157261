package main

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"time"
)

// machine says in a few words where a run took place, and with what.
func machine(p plan, r results) string {
	most := 0
	for _, rounds := range r {
		most = max(most, len(rounds))
	}
	return ground() + fmt.Sprintf("%d rounds of %d s; the load, the shop, Redis and the gate share the cores.\n", most, p.seconds)
}

// ground is the machine and what is installed on it.
func ground() string {
	var out strings.Builder
	fmt.Fprintf(&out, "%s, %d cores (%s), %s, %s; load average %s.\n", time.Now().UTC().Format("2006-01-02"), runtime.NumCPU(),
		after(contents("/proc/cpuinfo"), "model name\t: "), "Linux "+contents("/proc/sys/kernel/osrelease"), runtime.Version(),
		firstWord(contents("/proc/loadavg")))
	var versions []string
	for _, v := range [][]string{{"nginx", "-v"}, {"haproxy", "-v"}, {"redis-server", "--version"}, {"wrk", "-v"}} {
		text, _ := exec.Command(v[0], v[1:]...).CombinedOutput() // wrk ends with 1
		if line, _, _ := strings.Cut(string(text), "\n"); line != "" {
			versions = append(versions, shorten(line))
		}
	}
	fmt.Fprintf(&out, "%s.\n", strings.Join(versions, "; "))
	return out.String()
}

func contents(file string) string {
	text, _ := os.ReadFile(file)
	return strings.TrimSpace(string(text))
}

// after is the rest of the line behind a word.
func after(text, word string) string {
	_, rest, _ := strings.Cut(text, word)
	line, _, _ := strings.Cut(rest, "\n")
	return line
}

func firstWord(text string) string {
	word, _, _ := strings.Cut(text, " ")
	return word
}

// shorten keeps the beginning of what a program says of its version.
func shorten(line string) string {
	line = strings.TrimPrefix(line, "nginx version: ")
	for _, from := range []string{" sha=", " Copyright", " 20", " - http"} {
		line, _, _ = strings.Cut(line, from)
	}
	return line
}
