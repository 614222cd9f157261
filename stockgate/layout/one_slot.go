package layout

import "sluice/stockgate/key"

// ErrApart is the cause when a cluster could have the keys of one SKU on different servers.
var ErrApart = key.ErrApart

// InOneSlot rejects a layout whose keys of one SKU may be in different slots of a cluster, and says which keys would
// work. tag is what of a key decides its slot.
func (l *Layout) InOneSlot(tag func(key string) string) error {
	return key.OneSlot(l.prefix, l.named, tag)
}

// keysOf are the configured keys of a SKU.
func keysOf(o Options) (all []key.Named) {
	for _, k := range []key.Named{
		{Name: "key", Text: o.Key}, {Name: "status_key", Text: o.StatusKey}, {Name: "sold_out_key", Text: o.SoldOutFlag},
		{Name: "users_key", Text: o.UsersKey},
	} {
		if k.Text != "" {
			all = append(all, k)
		}
	}
	return all
}
