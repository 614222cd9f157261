package settler

// River's jobs are made of the changes of orders, and worked by a webhook. A job is inserted in the transaction that
// settles the change, so that the job is there exactly where the change is. A job is worked at least once: it is tried
// again until the webhook answers with 2xx, or River gives up. The tables and their upkeep are River's.

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"log/slog"
	"slices"

	"github.com/jackc/pgx/v5"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"

	"sluice/settle"
	"sluice/settle/sqlstore"
	"sluice/stockgate/ledger"
)

// insertAtOnce bounds the memory that one statement needs.
const insertAtOnce = 1000

const jobPrefix = "order." // of every kind

// jobArgs are the arguments of a job: the order as the change has left it. A SKU, a serial or a user that is not valid
// UTF-8 is \x and hexadecimal.
type jobArgs struct {
	SKU      string        `json:"sku"`
	Serial   string        `json:"serial"`
	Status   ledger.Status `json:"status"`
	Quantity int64         `json:"quantity"`
	User     string        `json:"user"`
	Time     int64         `json:"time"` // Unix ms; 0 = not known
	Born     int64         `json:"born"` // the first epoch of the ledger: a SKU that is sold again has another one
	Epoch    int64         `json:"epoch"`
	Version  int64         `json:"version"`
}

// Kind implements river.JobArgs.
func (a jobArgs) Kind() string { return jobPrefix + a.Status.String() }

// id is the same for the same change in each home, and in a database that was restored: River's numbers are not.
func (a jobArgs) id() string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%q %d %q %q", a.SKU, a.Born, a.Serial, a.Kind()))
	return hex.EncodeToString(sum[:16])
}

// newJobs returns what inserts the jobs of kinds, such as order.sold, into a queue of River.
func newJobs(kinds []string, queue string, log *slog.Logger) (*sqlstore.Jobs, error) {
	client, err := river.NewClient(riverpgxv5.New(nil), &river.Config{Logger: log})
	if err != nil {
		return nil, fmt.Errorf("jobs: %w", err)
	}
	options := &river.InsertOpts{Queue: queue}
	return &sqlstore.Jobs{
		Wants: func(to ledger.Status) bool { return slices.Contains(kinds, jobPrefix+to.String()) },
		Insert: func(ctx context.Context, conn *pgx.Conn, sku string, born int64, changes []settle.Record) error {
			for some := range slices.Chunk(changes, insertAtOnce) {
				params := make([]river.InsertManyParams, len(some))
				for i, r := range some {
					params[i] = river.InsertManyParams{Args: argsOf(sku, born, r), InsertOpts: options}
				}
				if _, err := client.InsertManyFastTx(ctx, begun{conn}, params); err != nil {
					return fmt.Errorf("insert jobs of %q: %w", sku, err)
				}
			}
			return nil
		},
	}, nil
}

func argsOf(sku string, born int64, r settle.Record) jobArgs {
	return jobArgs{SKU: sqlstore.Text(sku), Serial: sqlstore.Text(r.Serial), Status: r.Status, Quantity: r.Quantity,
		User: sqlstore.Text(r.User), Time: r.At, Born: born, Epoch: r.Epoch, Version: r.Ver}
}

// connection is embedded by this name, since pgx.Tx has a method Conn.
type connection = pgx.Conn

// begun is a connection on which database/sql has begun a transaction, which it also ends.
type begun struct{ *connection }

// Commit implements pgx.Tx.
func (begun) Commit(context.Context) error { return pgx.ErrTxClosed }

// Rollback implements pgx.Tx.
func (begun) Rollback(context.Context) error { return pgx.ErrTxClosed }

// LargeObjects implements pgx.Tx. River uses none.
func (begun) LargeObjects() pgx.LargeObjects { return pgx.LargeObjects{} }

// Conn implements pgx.Tx.
func (b begun) Conn() *pgx.Conn { return b.connection }
