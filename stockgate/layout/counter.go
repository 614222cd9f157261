package layout

// counter is a string that holds what is left, as in "seckill:stock:1001" = "500". The shop takes a unit by
// DECR. Shops differ in where they stop: some at 0, some at −1, some never; sold_out_at covers them all.
func counter() shape {
	return shape{left: only}
}

// only returns the single number of a layout that keeps what is left.
func only(n []int64) (int64, error) { return n[0], nil }
