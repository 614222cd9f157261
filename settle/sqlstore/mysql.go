package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/go-sql-driver/mysql"

	"sluice/settle"
)

func openMySQL(text, password string) (*sql.DB, dialect, error) {
	u, err := url.Parse(text)
	if err != nil || u.Host == "" || len(u.Path) < 2 {
		return nil, dialect{}, errors.New("database: the MySQL URL cannot be read; write mysql://user@host:3306/name")
	}
	c := mysql.NewConfig()
	c.User, c.Net, c.Addr, c.DBName = u.User.Username(), "tcp", u.Host, strings.TrimPrefix(u.Path, "/")
	if c.Passwd, _ = u.User.Password(); password != "" {
		c.Passwd = password
	}
	if socket := u.Query().Get("socket"); socket != "" {
		c.Net, c.Addr = "unix", socket
	} else if u.Port() == "" {
		c.Addr += ":3306"
	}
	if tls := u.Query().Get("tls"); tls != "" {
		c.TLSConfig = tls
	}
	c.InterpolateParams = true // one round trip a statement
	c.Timeout, c.ReadTimeout, c.WriteTimeout = 5*time.Second, 30*time.Second, 30*time.Second
	c.Params = map[string]string{"innodb_lock_wait_timeout": "2", "wait_timeout": "60"}
	c.RejectReadOnly = true // of a master that became a replica: a new connection finds the new one
	c.Logger = &mysql.NopLogger{}
	connector, err := mysql.NewConnector(c)
	if err != nil {
		return nil, dialect{}, errors.New("database: the MySQL URL cannot be used; write mysql://user@host:3306/name")
	}
	db := sql.OpenDB(connector)
	db.SetMaxOpenConns(8)
	return db, dialect{
		name: "mysql", skipLocked: " FOR UPDATE SKIP LOCKED", now: "CURRENT_TIMESTAMP(6)",
		clock: "CAST(UNIX_TIMESTAMP(NOW(6)) * 1000 AS SIGNED)", quote: "`",
		insertion: "INSERT IGNORE", upsert: upsertMySQL, isData: isMySQLData,
		options: &sql.TxOptions{Isolation: sql.LevelReadCommitted},
	}, nil
}

// upsertMySQL names new values by VALUES(), which is deprecated in MySQL 8.0.20 and the only way in MariaDB.
func upsertMySQL(ctx context.Context, tx *sql.Tx, b *settle.Batch, records []settle.Record, take bool) (int64,
	error) {
	return comparing(ctx, tx, b, records, take, " FOR UPDATE", "ON DUPLICATE KEY UPDATE buyer = VALUES(buyer), "+
		"quantity = VALUES(quantity), status = VALUES(status), epoch = VALUES(epoch), ver = VALUES(ver), at = VALUES(at), "+
		"missing = NULL, taken = VALUES(taken)")
}

// isMySQLData reports values out of range, of a wrong type or too long, violated constraints, check options of views,
// and signals of a trigger.
func isMySQLData(err error) bool {
	var e *mysql.MySQLError
	return errors.As(err, &e) && (string(e.SQLState[:2]) == "23" || // constraints
		slices.Contains([]uint16{1264, 1265, 1292, 1366, 1369, 1406, 1644, 1690, 3819, 4025}, e.Number))
}
