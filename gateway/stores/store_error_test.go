package stores

import (
	"errors"
	"fmt"
	"testing"

	"sluice/admin"
	"sluice/stockgate"
	"sluice/stockgate/layout"
)

func TestStore_StockThatOnlyTheShopCanChangeIsTheCallersFault(t *testing.T) {
	if err := adminError(fmt.Errorf("set: %w", layout.ErrNotWritable)); !errors.Is(err, admin.ErrInvalid) ||
		!errors.Is(err, layout.ErrNotWritable) {
		t.Errorf("%v is not recognised", err)
	}
}

func TestStore_UnknownSKUIsBothPackagesError(t *testing.T) {
	err := adminError(stockgate.ErrUnknownSKU)
	if !errors.Is(err, admin.ErrNoSKU) || !errors.Is(err, stockgate.ErrUnknownSKU) {
		t.Errorf("%v is not recognised", err)
	}
}
