package driver

// Promise is what one driver keeps and what it cannot. Each answer is one word or two, and each is provoked by a test.
type Promise struct {
	Driver string
	Single bool // it takes one unit an order
	Users  bool // it takes for known users alone
	Marks  bool // it knows an order that comes again by its Idempotency-Key

	Oversell      string // can more units be sold than there were?
	Undersell     string // is a unit lost when Redis' answer is lost?
	DoubleBuying  string // can one user buy twice, by two orders?
	Repeatable    string // does an order that comes again take no second unit?
	GiveBackTwice string // what comes of giving back the same order twice?
	Cluster       string // do the keys of a SKU lie in one slot?
}

// The answers.
const (
	no        = "no"
	afterLock = "by a writer without a fence"
	possible  = "possible"
	yes       = "yes"
	adds      = "adds a unit"
	harmless  = "harmless"
	unlisted  = "adds a unit, without orders_key"
	oneKey    = "yes"
	withTag   = "with a tag"
)

// Promises returns the table of all drivers, in the order of the documentation.
func Promises() []Promise {
	return []Promise{
		{hashOrdered, false, false, false, no, possible, possible, no, adds, oneKey},
		{hashBought, false, false, false, no, possible, possible, no, unlisted, withTag},
		{counterCodes, false, false, false, no, possible, possible, no, adds, oneKey},
		{counterUsers, true, true, false, no, possible, no, yes, harmless, withTag},
		{hashInStock, false, false, true, no, possible, possible, yes, harmless, withTag},
		{hashInStockOnce, false, false, true, no, no, possible, yes, harmless, withTag},
		{watched, false, false, false, no, possible, possible, no, adds, oneKey},
		{locked, false, false, false, afterLock, possible, possible, no, adds, withTag},
		{listUsers, true, true, false, no, possible, no, yes, harmless, withTag},
		{variants, false, false, false, no, possible, possible, no, adds, withTag},
	}
}

// promiseOf finds the row of a driver.
func promiseOf(driver string) (Promise, bool) {
	for _, p := range Promises() {
		if p.Driver == driver {
			return p, true
		}
	}
	return Promise{}, false
}
