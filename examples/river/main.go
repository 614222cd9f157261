// A shop's own worker of the jobs that sluice-settle run inserts: github.com/riverqueue/river on the same PostgreSQL.
//
// It takes the place of sluice-settle work. Its JobArgs name the kind and the arguments of docs/settlement-reference.md.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
)

// order is what a job tells of an order.
type order struct {
	SKU      string `json:"sku"`
	Serial   string `json:"serial"`
	Quantity int64  `json:"quantity"`
	User     string `json:"user"`
}

type (
	sold     struct{ order }
	refunded struct{ order }
)

// Kind implements river.JobArgs.
func (sold) Kind() string { return "order.sold" }

// Kind implements river.JobArgs.
func (refunded) Kind() string { return "order.refunded" }

// points books points in the transaction that completes the job: each order has its points once, whatever dies.
type points struct {
	river.WorkerDefaults[sold]
	pool *pgxpool.Pool
}

// Work implements river.Worker.
func (p *points) Work(ctx context.Context, job *river.Job[sold]) error {
	return pgx.BeginFunc(ctx, p.pool, func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, `INSERT INTO points (buyer, points) VALUES ($1, $2)
			ON CONFLICT (buyer) DO UPDATE SET points = points.points + excluded.points`, job.Args.User, 10*job.Args.Quantity)
		if err != nil {
			return err
		}
		_, err = river.JobCompleteTx[*riverpgxv5.Driver](ctx, tx, job)
		return err
	})
}

// mail tells the buyer of the refund. It may come twice where the worker dies after it was sent.
type mail struct{ river.WorkerDefaults[refunded] }

// Work implements river.Worker.
func (mail) Work(_ context.Context, job *river.Job[refunded]) error {
	fmt.Printf("mail to %s: your order %s was refunded\n", job.Args.User, job.Args.Serial)
	return nil
}

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: river postgres://user@host:5432/name")
		os.Exit(2)
	}
	if err := run(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "river:", err)
		os.Exit(1)
	}
}

func run(database string) error {
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt)
	defer cancel()
	pool, err := pgxpool.New(ctx, database)
	if err != nil {
		return err
	}
	defer pool.Close()
	_, err = pool.Exec(ctx, "CREATE TABLE IF NOT EXISTS points (buyer text PRIMARY KEY, points bigint NOT NULL)")
	if err != nil {
		return err
	}
	workers := river.NewWorkers()
	river.AddWorker(workers, &points{pool: pool})
	river.AddWorker(workers, mail{})
	client, err := river.NewClient(riverpgxv5.New(pool), &river.Config{
		Queues:          map[string]river.QueueConfig{"sluice": {MaxWorkers: 10}}, // the queue of settle.jobs
		Workers:         workers,
		SoftStopTimeout: 10 * time.Second,
	})
	if err != nil {
		return err
	}
	if err := client.Start(ctx); err != nil {
		return err
	}
	<-client.Stopped()
	return nil
}
