package proxy

// Stock is what the gate may ask about a SKU. All times are monotonic nanoseconds of the caller's clock.
type Stock interface {
	// Closed answers from memory alone, at once: the reason why sku cannot be bought at now, or Admitted
	// when it may be or when nothing is known of it yet.
	Closed(now int64, sku []byte) Reason

	// Enter decides for one request of user, who is empty where the route identifies nobody. It may wait,
	// within a bound, for the first look at a SKU that nobody asked for before, and for what is known of user.
	// It keeps neither slice. Each request that was Admitted must call Leave once when the shop has answered.
	Enter(now int64, sku, user []byte) Reason

	// Known reports that Enter would not wait. It may be wrong by then, rarely.
	Known(now int64, sku, user []byte) bool

	// Leave ends what Enter admitted.
	Leave(sku []byte)
}
