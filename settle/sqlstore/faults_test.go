package sqlstore_test

import (
	"database/sql"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"

	"sluice/internal/dbtest"
	"sluice/internal/redistest"
	"sluice/settle"
	"sluice/settle/sqlstore"
	"sluice/stockgate/ledger"
)

// A database that fails over to a replica may have lost its last transactions. A SKU that no one orders any more is
// settled again all the same.
func TestSettler_DatabaseThatLostItsTailIsToldAgain(t *testing.T) {
	t.Parallel()
	s := newSite(t, redistest.Start(t), "sqlite:"+filepath.Join(t.TempDir(), "s.db"), sqlstore.Stock{})
	const sku = "quiet"
	sold := func(n int64) func() bool {
		return func() bool {
			c, _, _ := s.store.Cursor(t.Context(), sku)
			return c.Sold == n
		}
	}
	s.ledger.set(sku, 5)
	s.runs(s.settler)
	s.ledger.buy(sku, 0, 3)
	s.until("3 units are settled", sold(3))
	tables := []string{"sluice_order", "sluice_cursor", "sluice_stock"}
	for _, table := range tables {
		s.exec("CREATE TABLE kept_" + table + " AS SELECT * FROM " + table)
	}
	s.ledger.buy(sku, 3, 2)
	s.until("5 units are settled", sold(5))
	for _, table := range tables {
		s.exec("DELETE FROM " + table)
		s.exec("INSERT INTO " + table + " SELECT * FROM kept_" + table)
	}
	s.until("what was lost is settled again", sold(5))
	s.until("the books are equal", func() bool {
		c, ok, err := settle.Verify(t.Context(), s.stream, s.store, sku)
		return err == nil && ok && c.Equal()
	})
}

// Two shops sell a SKU of one name. Their orders are not mixed.
func TestStore_IsOfOneShop(t *testing.T) {
	t.Parallel()
	everyDatabase(t, func(t *testing.T, url string) {
		open := func(shop string) *sqlstore.Store {
			s := must(sqlstore.Open(sqlstore.Options{URL: url, Shop: shop}))(t)
			t.Cleanup(func() { s.Close() })
			return s
		}
		one, two, any := open("one"), open("two"), open("")
		must(one.Migrate(t.Context()))(t)
		for _, s := range []*sqlstore.Store{one, one, any} {
			if err := s.Claim(t.Context()); err != nil {
				t.Error(err)
			}
		}
		for _, err := range []error{two.Claim(t.Context()), two.CheckSchema(t.Context())} {
			if err == nil || !strings.Contains(err.Error(), `of the shop "one", and name in the file is "two"`) {
				t.Errorf("another shop: %v", err)
			}
		}
		if err := one.Exec(t.Context(), "UPDATE sluice_shop SET name = 'two'"); err != nil { // the way out
			t.Fatal(err)
		}
		if err := two.Claim(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// A trigger of the shop breaks a unique key of the shop for one order: that one waits for an operator, and no other.
func TestSettle_OrderThatBreaksAKeyOfTheShopIsParked(t *testing.T) {
	t.Parallel()
	everyDatabase(t, func(t *testing.T, url string) {
		s := newSite(t, redistest.Start(t), url, sqlstore.Stock{})
		s.exec("CREATE TABLE points (serial varchar(64) PRIMARY KEY)")
		s.exec("INSERT INTO points VALUES ('a-1')")
		const row = " AFTER INSERT ON sluice_order FOR EACH ROW "
		switch scheme, _, _ := strings.Cut(url, ":"); scheme {
		case "mysql":
			s.exec("CREATE TRIGGER pays" + row + "INSERT INTO points VALUES (NEW.serial)")
		case "sqlite":
			s.exec("CREATE TRIGGER pays" + row + "BEGIN INSERT INTO points VALUES (NEW.serial); END")
		default:
			s.exec("CREATE FUNCTION pay() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN " +
				"INSERT INTO points VALUES (NEW.serial); RETURN NEW; END $$")
			s.exec("CREATE TRIGGER pays" + row + "EXECUTE FUNCTION pay()")
		}
		s.ledger.set("a", 10)
		s.ledger.buy("a", 0, 3)
		s.drain("a")
		if c, _, err := s.store.Cursor(t.Context(), "a"); err != nil || c.Sold != 3 {
			t.Errorf("the cursor is at %d units: %v", c.Sold, err)
		}
		s.oneConflict("a", "entry", "a-1")
	})
}

// The shop cancels an order of the sale before. The present sale has an order of the same serial, which stays sold.
func TestGiveback_OfAnEarlierSaleReturnsNoUnitOfThisOne(t *testing.T) {
	t.Parallel()
	s := newSite(t, redistest.Start(t), "sqlite:"+filepath.Join(t.TempDir(), "s.db"), sqlstore.Stock{})
	const sku = "again"
	s.ledger.set(sku, 5)
	s.ledger.buy(sku, 0, 2)
	s.ledger.change(sku, ledger.Ended)
	s.drain(sku)
	if err := s.archives(sku); err != nil {
		t.Fatal(err)
	}
	s.ledger.set(sku, 5)
	s.ledger.open(sku)
	s.drain(sku)
	s.ledger.buy(sku, 1, 1) // the serial again-1 is used again, and not settled yet
	s.cancels(sku, "again-0")
	s.cancels(sku, "again-1")
	s.givesBack(2) // they wait until it is known which order is meant
	sold := func() int64 { return must(s.stream.Ledgers(t.Context(), []string{sku}))(t)[0].Sold }
	if n := sold(); n != 1 {
		t.Errorf("%d units are sold: want 1", n)
	}
	s.drain(sku)
	s.ledger.buy(sku, 7, 1) // the sale goes on, and is always a little ahead
	s.exec("UPDATE sluice_giveback SET due = 0")
	s.givesBack(2) // the newer order of the two serials
	if n := sold(); n != 1 {
		t.Errorf("%d units are sold: want 1", n)
	}
	s.drain(sku)
	for _, want := range []string{"again-0 R", "again-1 C", "again-1 R"} {
		serial, status, _ := strings.Cut(want, " ")
		rows := must(s.store.Texts(t.Context(), "SELECT status FROM sluice_order WHERE serial = '"+serial+
			"' AND status = '"+status+"'"))(t)
		if len(rows) != 1 {
			t.Errorf("%d rows of %s: want 1", len(rows), want)
		}
	}
	s.equal(sku)
}

// A master of MariaDB becomes a read-only replica, and keeps its connections. A new one is made for each try: the name
// may lead to the new master by now.
func TestSettler_LeavesADatabaseThatBecameReadOnly(t *testing.T) {
	t.Parallel()
	db := dbtest.MariaDB(t)
	_, address, _ := strings.Cut(db.URL, "@")
	address, _, _ = strings.Cut(address, "/")
	root := must(sql.Open("mysql", "sluice@tcp("+address+")/"))(t)
	t.Cleanup(func() { root.Close() })
	do := func(query string) {
		t.Helper()
		must(root.ExecContext(t.Context(), query))(t)
	}
	do("CREATE USER app@'%'")
	do("GRANT SELECT, INSERT, UPDATE, DELETE, CREATE, ALTER, INDEX, DROP ON sluice.* TO app@'%'")
	s := newSite(t, redistest.Start(t), "mysql://app@"+address+"/sluice", sqlstore.Stock{})
	s.settler = must(settle.New(s.stream, s.store, settle.Options{Batch: 7, Ledger: s.ledger,
		Log: slog.New(slog.DiscardHandler)}))(t)
	sold := func(n int64) func() bool {
		return func() bool {
			c, _, _ := s.store.Cursor(t.Context(), "a")
			return c.Sold == n
		}
	}
	s.runs(s.settler)
	s.ledger.set("a", 100)
	s.ledger.buy("a", 0, 2)
	s.until("it is settled", sold(2))
	connections := func() (n int) {
		var name string
		if err := root.QueryRow("SHOW GLOBAL STATUS LIKE 'Connections'").Scan(&name, &n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	do("SET GLOBAL read_only = 1")
	before := connections()
	s.ledger.buy("a", 2, 2)
	s.until("it connects again and again", func() bool { return connections() > before+3 })
	s.until("the settler names the cause", func() bool { return strings.Contains(s.settler.Failing(), "is read-only") })
	do("SET GLOBAL read_only = 0")
	s.until("it goes on", sold(4))
}
