package sqlstore_test

import (
	"slices"

	"sluice/settle"
	"sluice/settle/sqlstore"
)

const shopOrdersQuery = "SELECT serial, quantity FROM shop_orders WHERE sku = :sku AND status <> 'cancelled'"

// comparesShop has each difference that the orders of a shop can have, and orders that are none.
func comparesShop(s *site) {
	const sku = "compared"
	s.exec("CREATE TABLE shop_orders (sku varchar(64), serial varchar(64), quantity bigint, status varchar(16))")
	s.ledger.set(sku, 50)
	s.ledger.buy(sku, 90, 1)
	s.drain(sku)
	s.losesLedger(sku) // the SKU is sold again: the first order is one of an earlier sale
	s.ledger.set(sku, 50)
	s.ledger.buy(sku, 0, 4)
	s.ledger.reserve(sku, "held", "h", 1)
	s.ledger.reserve(sku, "under-way", "h", 1)
	s.ledger.buy(sku, 5, 1)
	s.ledger.finish(sku, "refund", sku+"-5")
	s.drain(sku)
	s.exec("INSERT INTO shop_orders VALUES ('compared', 'compared-0', 1, 'paid'), " +
		"('compared', 'compared-90', 1, 'paid'), " + // of the earlier sale
		"('compared', 'compared-1', 3, 'paid'), " + // took 1
		"('compared', 'held', 1, 'new'), " + // its outcome is not known yet, and it has a unit
		"('compared', 'compared-2', 1, 'cancelled'), " +
		"('compared', 'compared-5', 1, 'paid'), " + // it was refunded
		"('compared', 'unknown', 2, 'paid'), ('other', 'compared-3', 1, 'paid')")
	c, _, _ := s.store.Cursor(s.Context(), sku)
	found := must(s.store.CompareShop(s.Context(), shopOrdersQuery, sku, c.Born))(s.T)
	want := []settle.ShopOrder{
		{Serial: "compared-1", Shop: 3, Booked: 1}, {Serial: "compared-5", Shop: 1}, {Serial: "unknown", Shop: 2},
		{Serial: "compared-2", Booked: 1}, {Serial: "compared-3", Booked: 1},
	}
	if !slices.Equal(found, want) {
		s.Errorf("%+v: want %+v, orders without units first", found, want)
	}
}

// findsBuyersOver counts what is held and sold, and not what is given back.
func findsBuyersOver(s *site) {
	const sku = "limited"
	s.ledger.set(sku, 50)
	for serial, user := range map[string]string{"a1": "alice", "a2": "alice", "a3": "alice", "b1": "bob\x00",
		"b2": "bob\x00", "c1": "carol", "c2": "carol"} {
		s.ledger.reserve(sku, serial, user, 1)
	}
	s.ledger.finish(sku, "confirm", "a1")
	s.ledger.finish(sku, "release", "c1")
	s.drain(sku)
	c, _, _ := s.store.Cursor(s.Context(), sku)
	found := must(s.store.BuyersOver(s.Context(), sku, c.Born, 1))(s.T)
	if want := []sqlstore.Buyer{{User: "alice", Units: 3}, {User: "bob\x00", Units: 2}}; !slices.Equal(found, want) {
		s.Errorf("%+v: want %+v", found, want)
	}
	if found := must(s.store.BuyersOver(s.Context(), sku, c.Born, 0))(s.T); len(found) != 0 {
		s.Errorf("without a limit: %+v", found)
	}
}
