package settler

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"

	"sluice/internal/periodic"
	"sluice/stockgate/ledger"
)

const (
	timeoutMargin = 5 * time.Second  // of a job beyond its request
	rescueMargin  = 30 * time.Second // after a job's time, until the job of a dead worker is worked again
	maxSnoozing   = 24 * time.Hour   // of a job by Retry-After; later each response is a try, and the last one discards it
	jobsTryAgain  = 2 * time.Second  // while the database is away
)

// jobOptions configure workJobs.
type jobOptions struct {
	Queue   string
	Workers int // jobs at the same time
	URL     string
	Key     []byte        // signs each request
	Timeout time.Duration // of a request
	Log     *slog.Logger

	Requests *prometheus.CounterVec // of the webhook, by the class of the response; nil = they are not counted
}

// jobRequest is the body that the webhook gets for a job.
type jobRequest struct {
	ID      string `json:"id"` // of the change: the same at each try, and in each home
	Kind    string `json:"kind"`
	Attempt int    `json:"attempt"` // from 1 on
	jobArgs
}

// jobPoster works a job by one signed request.
type jobPoster struct {
	river.WorkerDefaults[jobArgs]
	webhook  *poster
	requests *prometheus.CounterVec
}

// Work implements river.Worker. Every response but a 2xx is tried again. For a day a Retry-After is heeded, and no try.
func (p *jobPoster) Work(ctx context.Context, job *river.Job[jobArgs]) error {
	text, err := json.Marshal(jobRequest{ID: job.Args.id(), Kind: job.JobRow.Kind, Attempt: job.Attempt,
		jobArgs: job.Args})
	if err != nil {
		return err
	}
	class, after, err := p.webhook.Post(ctx, text)
	if p.requests != nil {
		p.requests.WithLabelValues(class).Inc()
	}
	if err != nil && after > 0 && time.Since(job.CreatedAt) < maxSnoozing {
		return river.JobSnooze(after)
	}
	return err
}

// workJobs works the jobs of a queue until ctx ends; those that are under way then are finished, as long as a request
// may take. It waits for the database.
func workJobs(ctx context.Context, pool *pgxpool.Pool, o jobOptions) error {
	client, err := newJobClient(pool, o)
	if err != nil {
		return fmt.Errorf("jobs: %w", err)
	}
	for said := ""; ; {
		err := checkJobTables(ctx, pool)
		if err == nil {
			err = client.Start(context.WithoutCancel(ctx))
		}
		if err == nil {
			break
		}
		if text := err.Error(); text != said && ctx.Err() == nil {
			said = text
			o.Log.Error("jobs: the database cannot be used yet; jobs wait", "err", err, "again_in", jobsTryAgain)
		}
		if !periodic.Pause(ctx, jobsTryAgain) {
			return nil // stopped while it waited
		}
	}
	o.Log.Info("jobs: ready", "queue", o.Queue, "workers", o.Workers)
	<-ctx.Done()
	end, cancel := context.WithTimeout(context.WithoutCancel(ctx), o.Timeout+2*timeoutMargin)
	defer cancel()
	return client.Stop(end)
}

func newJobClient(pool *pgxpool.Pool, o jobOptions) (*river.Client[pgx.Tx], error) {
	workers := river.NewWorkers()
	work := &jobPoster{webhook: newPoster(o.URL, o.Key, o.Timeout), requests: o.Requests}
	for status := range ledger.Statuses {
		river.AddWorkerArgs(workers, jobArgs{Status: status}, work)
	}
	whole := o.Timeout + timeoutMargin
	return river.NewClient(riverpgxv5.New(pool), &river.Config{
		Queues: map[string]river.QueueConfig{o.Queue: {MaxWorkers: o.Workers}}, Workers: workers, Logger: o.Log,
		JobTimeout: whole, RescueStuckJobsAfter: whole + rescueMargin, SoftStopTimeout: whole,
	})
}
