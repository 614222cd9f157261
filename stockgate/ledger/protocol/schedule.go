package protocol

// What a SKU is that is on, outside of its hours. Nothing ever keeps these: they follow from the time.
const (
	Waiting State = "waiting" // it opens later
	Over    State = "over"    // it has closed
)

// At is the state at now (Unix ms): that which is kept, unless it is on and the hours say Waiting or Over.
func (h StockVersion) At(now int64) State {
	switch {
	case h.State != On:
		return h.State
	case now < h.Opens:
		return Waiting
	case h.Closes != 0 && now >= h.Closes:
		return Over
	}
	return On
}

// Older reports whether h is older than other.
func (h StockVersion) Older(other StockVersion) bool {
	return h.Epoch < other.Epoch || h.Epoch == other.Epoch && h.Ver < other.Ver
}
