package driver

import (
	"strings"

	"sluice/proxy/reject"
	"sluice/stockgate/key"
)

// unfit refuses orders that the driver could never take, or whose keys would be another's.
func (d *Desk) unfit(o *order) reject.Reason {
	switch p := d.promise; {
	case o.quantity < 1, p.Single && o.quantity > 1, p.Users && o.user == "":
		return reject.BadRequest
	case !key.Fits(o.sku, d.keys.parts):
		return reject.UnknownSKU
	case d.keys.mark.Template != nil && strings.HasSuffix(d.keys.mark.of(o), back): // the mark of another order's giving back
		return reject.BadRequest
	}
	return reject.Admitted
}
