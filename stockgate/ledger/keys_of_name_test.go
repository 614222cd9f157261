package ledger

// shop is the store of the name that tests use, for its keys.
var shop = &Store{name: "shop"}

const shopNews = "sluice:shop:news"

func queueKeys(sku string) []string { return shop.queueKeys(sku) }
func home(sku string) string        { return shop.home(sku) }

func keys(sku string) []string {
	k := shop.keys(sku)
	return k[:]
}
