package sqlstore

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib"

	"sluice/settle"
)

// postgresSession bounds every wait, so that a settler that was killed leaves no lock behind for long. The last two are
// not known to every server and platform.
var postgresSession = []string{
	"SET lock_timeout = '2s'", "SET statement_timeout = '20s'", "SET idle_in_transaction_session_timeout = '30s'",
	"SET client_connection_check_interval = '1s'", "SET tcp_user_timeout = '20s'",
}

func openPostgres(url, password string) (*sql.DB, dialect, error) {
	c, err := pgx.ParseConfig(url)
	if err != nil {
		return nil, dialect{}, errors.New("database: the PostgreSQL URL cannot be read; write postgres://user@host:5432/name")
	}
	if password != "" {
		c.Password = password
	}
	PrepareNothing(url, c)
	c.ConnectTimeout = cmp.Or(c.ConnectTimeout, 5*time.Second)
	dial := c.DialFunc
	c.DialFunc = func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := dial(ctx, network, address)
		if err != nil {
			return nil, err
		}
		return &patientConn{Conn: conn}, nil
	}
	db := stdlib.OpenDB(*c, stdlib.OptionAfterConnect(func(ctx context.Context, conn *pgx.Conn) error {
		for i, statement := range postgresSession {
			if _, err := conn.Exec(ctx, statement); err != nil && i < 3 {
				return fmt.Errorf("%s: %w", statement, err)
			}
		}
		return nil
	}))
	db.SetMaxOpenConns(8)
	return db, dialect{
		name: "postgres", numbered: true, skipLocked: " FOR UPDATE SKIP LOCKED", now: "now()",
		immediate: "SET CONSTRAINTS ALL IMMEDIATE",
		clock:     "CAST(extract(epoch FROM clock_timestamp()) * 1000 AS bigint)", quote: `"`,
		insertion: "INSERT", ignored: " ON CONFLICT DO NOTHING", upsert: upsertPostgres, isData: isPostgresData,
		options: &sql.TxOptions{Isolation: sql.LevelReadCommitted},
	}, nil
}

// PrepareNothing has a connection prepare no statement, unless its URL says how: a pooler such as PgBouncer may run
// each transaction on another connection to the server, which does not know what was prepared.
func PrepareNothing(url string, c *pgx.ConnConfig) {
	if !strings.Contains(url, "default_query_exec_mode=") {
		c.DefaultQueryExecMode = pgx.QueryExecModeExec
	}
}

// upsertStatement lets the rows themselves tell by how much they have changed what they have taken, as takes does. Which
// rows may change is settle.Record.Replaces.
const upsertStatement = `WITH up AS (
  INSERT INTO sluice_order AS o (sku, born, serial, buyer, quantity, status, epoch, ver, at, taken)
  SELECT $1::text, $2::bigint, r.*, CASE WHEN $11::boolean AND r.status = 'C' THEN r.quantity ELSE 0 END FROM
    unnest($3::text[], $4::bytea[], $5::bigint[], $6::text[], $7::bigint[], $8::bigint[],
    $9::bigint[]) AS r (serial, buyer, quantity, status, epoch, ver, at)
  ON CONFLICT (sku, born, serial) DO UPDATE SET
    counted = o.taken,
    taken = CASE WHEN NOT $11 THEN o.taken
      WHEN excluded.taken < CASE WHEN o.status = 'C' THEN o.quantity ELSE 0 END THEN LEAST(o.taken, excluded.taken)
      ELSE LEAST(excluded.taken, o.taken + excluded.taken - CASE WHEN o.status = 'C' THEN o.quantity ELSE 0 END) END,
    buyer = excluded.buyer, quantity = excluded.quantity, status = excluded.status, at = excluded.at,
    epoch = excluded.epoch, ver = excluded.ver, missing = NULL
  WHERE ($10::boolean OR (excluded.epoch, excluded.ver) > (o.epoch, o.ver)) AND (
    o.status NOT IN ('X', 'R') OR excluded.status IN ('X', 'R') OR o.at > 0 AND o.at < $12::bigint OR
    $10 AND o.status = 'X' AND excluded.status = 'H' OR EXISTS (
      SELECT 1 FROM unnest($13::text[], $14::bigint[], $15::bigint[]) AS n (serial, epoch, ver)
      WHERE n.serial = excluded.serial AND (n.epoch, n.ver) > (o.epoch, o.ver)))
  RETURNING o.taken - o.counted AS units)
SELECT COALESCE(sum(units), 0)::bigint FROM up`

func upsertPostgres(ctx context.Context, tx *sql.Tx, b *settle.Batch, records []settle.Record, take bool) (units int64,
	err error) {
	n := len(records)
	serials, buyers, statuses := make([]string, n), make([][]byte, n), make([]string, n)
	quantities, epochs, vers, ats := make([]int64, n), make([]int64, n), make([]int64, n), make([]int64, n)
	var anew []string // few begin anew where a row is
	var anewEpochs, anewVers []int64
	for i, r := range records {
		serials[i], buyers[i], statuses[i] = stored(r.Serial), []byte(r.User), string(r.Status)
		quantities[i], epochs[i], vers[i], ats[i] = r.Quantity, r.Epoch, r.Ver, r.At
		if r.Anew != (settle.Position{}) && !r.Status.Final() {
			anew, anewEpochs, anewVers = append(anew, serials[i]), append(anewEpochs, r.Anew.Epoch), append(anewVers, r.Anew.Ver)
		}
	}
	err = tx.QueryRowContext(ctx, upsertStatement, stored(b.SKU), b.To.Born, serials, buyers, quantities, statuses, epochs,
		vers, ats, b.Whole, take, b.Forgotten, anew, anewEpochs, anewVers).Scan(&units)
	return units, err
}

// dataClasses begin the codes of data exceptions, violated constraints, check options of views, exceeded limits such as
// that of an index row, and exceptions that a trigger raises.
var dataClasses = []string{"22", "23", "44", "54", "P0001"}

func isPostgresData(err error) bool {
	code := postgresCode(err)
	return slices.ContainsFunc(dataClasses, func(class string) bool { return strings.HasPrefix(code, class) })
}

// postgresCode is the SQLSTATE of an error of PostgreSQL, or "".
func postgresCode(err error) string {
	var e *pgconn.PgError
	if errors.As(err, &e) {
		return e.Code
	}
	return ""
}
