package config

import (
	"regexp"
	"slices"
	"strings"
	"time"

	"sluice/config/report"
)

// SettleJobs are jobs of River, which PostgreSQL keeps.
type SettleJobs struct {
	Kinds   []string      `toml:"kinds"` // of JobKinds; empty = no jobs
	Queue   string        `toml:"queue"`
	URL     string        `toml:"url"` // of sluice settle work; "" = the shop's own workers work the jobs
	KeyFile string        `toml:"key_file"`
	Key     Secret        // what KeyFile holds
	Workers int           `toml:"workers" unit:"jobs"` // 1 to 1000
	Timeout time.Duration `toml:"timeout"`             // 100ms to 10m
}

// JobKinds are the changes of an order that a job can follow.
var JobKinds = []string{"order.reserved", "order.confirmed", "order.released", "order.refunded"}

func (s *Settle) checkJobs(r *report.Report) {
	j := &s.Jobs
	report.Between(r, "settle.jobs.workers", j.Workers, 1, 1000)
	report.Between(r, "settle.jobs.timeout", j.Timeout, 100*time.Millisecond, 10*time.Minute)
	for _, kind := range j.Kinds {
		if !slices.Contains(JobKinds, kind) {
			r.Fail("settle.jobs.kinds", "%q is not known; write some of %s", kind, strings.Join(JobKinds, ", "))
		}
	}
	if !queueNames.MatchString(j.Queue) || len(j.Queue) > 64 {
		r.Fail("settle.jobs.queue", "%q is not a name of a queue; write letters, digits, _ and -, at most 64", j.Queue)
	}
	if len(j.Kinds) > 0 && !strings.HasPrefix(s.Database, "postgres") {
		r.Fail("settle.jobs.kinds", "needs PostgreSQL, which keeps the jobs, but settle.database is %q; with another database "+
			"use [settle.webhook]", s.Database)
	}
	if j.URL != "" {
		s.checkReceiver(r, "settle.jobs.", j.URL, j.KeyFile)
	}
}

// queueNames are names that River takes.
var queueNames = regexp.MustCompile(`^[a-z0-9]+([_-]?[a-z0-9]+)*$`)
