package stockgate

import "log/slog"

// maxNamed is how many faulty SKUs are named in the log; they may be a client's invention.
const maxNamed = 256

// faults names each faulty SKU once, until it is whole again. Only the sampler uses it.
type faults struct {
	named map[string]bool
	full  bool // the log says that no more are named
	log   *slog.Logger
}

func (f *faults) report(sku string, cause error) {
	switch {
	case cause == nil:
		delete(f.named, sku)
	case f.named[sku]:
	case len(f.named) < maxNamed:
		f.named[sku] = true
		f.log.Warn("stock cannot be read", "sku", sku, "cause", cause)
	case !f.full:
		f.full = true
		f.log.Warn("more stocks cannot be read; no further ones are named", "named", maxNamed)
	}
}
