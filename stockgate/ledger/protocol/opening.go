package protocol

import (
	"errors"
)

// Opening is what a ledger begins with.
type Opening struct {
	Total, Limit  int64 // units, and units a person; 0 = no limit
	Opens, Closes int64 // Unix ms; 0 = no such bound
}

func (o Opening) Check(sku string) error {
	if o.Limit == KeepLimit {
		return errors.New("how many a person may have is not said")
	}
	return errors.Join(CheckTotal(sku, o.Total, o.Limit), CheckSchedule(sku, o.Opens, o.Closes))
}
