package driver

import (
	"strings"

	"sluice/proxy"
	"sluice/stockgate/key"
)

// unfit refuses orders that the driver could never take, or whose keys would be another's.
func (d *Desk) unfit(o *order) proxy.Reason {
	switch p := d.promise; {
	case o.quantity < 1, p.Single && o.quantity > 1, p.Users && o.user == "":
		return proxy.BadRequest
	case !key.Fits(o.sku, d.keys.parts):
		return proxy.UnknownSKU
	case d.keys.mark.Template != nil && strings.HasSuffix(d.keys.mark.of(o), back): // the mark of another order's giving back
		return proxy.BadRequest
	}
	return proxy.Admitted
}
