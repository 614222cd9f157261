package sqlstore

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"sluice/settle"
	"sluice/stockgate/ledger"
)

// CompareShop compares the orders of a ledger with those of the shop. query returns serial and quantity, and names the
// SKU as :sku. Orders that took too few units come first: they are oversold. A held order has taken its units, and
// the shop may not have it yet, unless the ledger has lost it. The shop's orders of earlier ledgers are no difference.
// Where rows of the shop cannot be read, the other orders are compared, and the error wraps settle.ErrShopRow.
func (s *Store) CompareShop(ctx context.Context, query, sku string, born int64) (differ []settle.ShopOrder, err error) {
	shop, unread, unclear := s.shopOrders(ctx, query, sku)
	if unclear != nil {
		unclear = fmt.Errorf("read the shop's orders of %q by settle.orders_query: %w", sku, unclear)
	}
	if unclear != nil && !errors.Is(unclear, settle.ErrShopRow) {
		return nil, unclear
	}
	var unsold []settle.ShopOrder
	err = s.Orders(ctx, sku, born, func(r settle.Record) {
		if r.Status != ledger.StatusSold && (r.Status != ledger.StatusHeld || r.Missing) {
			return
		}
		if has := shop[r.Serial]; has > r.Quantity {
			differ = append(differ, settle.ShopOrder{Serial: r.Serial, Shop: has, Booked: r.Quantity})
		} else if has < r.Quantity && r.Status == ledger.StatusSold && !unread[r.Serial] {
			unsold = append(unsold, settle.ShopOrder{Serial: r.Serial, Shop: has, Booked: r.Quantity})
		}
		delete(shop, r.Serial)
	})
	if err == nil && len(shop) > 0 {
		err = s.each(ctx, s.db, func(rows *sql.Rows) error {
			var serial string
			var quantity int64
			err := rows.Scan(&serial, &quantity)
			if serial = original(serial); shop[serial] <= quantity {
				delete(shop, serial)
			}
			return err
		}, "SELECT serial, quantity FROM sluice_order WHERE sku = ? AND born < ? AND status IN ('C', 'H')", stored(sku), born)
	}
	for _, serial := range slices.Sorted(maps.Keys(shop)) {
		if shop[serial] > 0 {
			differ = append(differ, settle.ShopOrder{Serial: serial, Shop: shop[serial]})
		}
	}
	return append(differ, unsold...), cmp.Or(err, unclear)
}

// shopOrders are the units of each order of the shop. Of the orders of unread a row has no number of units; the error
// wraps settle.ErrShopRow then, or where a row has no serial.
func (s *Store) shopOrders(ctx context.Context, query, sku string) (all map[string]int64, unread map[string]bool,
	err error) {
	all, unread = make(map[string]int64), make(map[string]bool)
	faulty, first := 0, ""
	query, args := ofSKU(query, sku)
	err = s.each(ctx, s.db, func(rows *sql.Rows) error {
		var serial, quantity sql.NullString
		if err := rows.Scan(&serial, &quantity); err != nil {
			return err
		}
		units, err := strconv.ParseInt(quantity.String, 10, 64)
		if err == nil && serial.Valid {
			all[serial.String] += units
			return nil
		}
		if faulty++; faulty == 1 {
			first = fmt.Sprintf("serial %s and quantity %s", orNull(serial), orNull(quantity))
		}
		unread[serial.String] = true
		return nil
	}, query, args...)
	if err == nil && faulty > 0 {
		err = fmt.Errorf("%d rows cannot be read; the first one has %s: %w", faulty, first, settle.ErrShopRow)
	}
	return all, unread, err
}

func orNull(text sql.NullString) string {
	if !text.Valid {
		return "NULL"
	}
	return strconv.QuoteToASCII(text.String)
}

// ofSKU is a query of the configuration, which names the SKU as :sku, and its arguments.
func ofSKU(query, sku string) (string, []any) {
	return strings.ReplaceAll(query, ":sku", "?"), slices.Repeat([]any{stored(sku)}, strings.Count(query, ":sku"))
}

// Buyer is a person with more units than one may have.
type Buyer struct {
	User  string
	Units int64
}

// BuyersOver returns the buyers of a ledger with more than limit units, held and sold; those with most come first.
// limit 0 = no limit.
func (s *Store) BuyersOver(ctx context.Context, sku string, born, limit int64) (over []Buyer, err error) {
	if limit == 0 {
		return nil, nil
	}
	units := make(map[string]int64)
	err = s.Orders(ctx, sku, born, func(r settle.Record) {
		if r.User != "" && (r.Status == ledger.StatusSold || r.Status == ledger.StatusHeld) {
			units[r.User] += r.Quantity
		}
	})
	for user, n := range units {
		if n > limit {
			over = append(over, Buyer{user, n})
		}
	}
	slices.SortStableFunc(over, func(a, b Buyer) int {
		return cmp.Or(cmp.Compare(b.Units, a.Units), cmp.Compare(a.User, b.User))
	})
	return over, err
}
