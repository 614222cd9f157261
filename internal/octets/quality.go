package octets

// Quality reads ";q=0.8" as 800, and none as 1000.
func Quality(params []byte) int {
	for len(params) > 0 {
		var item []byte
		item, params = Cut(params, ';')
		if item = Trim(item); len(item) >= 3 && Lower(item[0]) == 'q' && item[1] == '=' {
			return thousandths(item[2:])
		}
	}
	return 1000
}

// thousandths reads a number from 0 to 1 with at most three decimals, up to the first byte of anything else.
func thousandths(text []byte) (q int) {
	unit := 1000
	for _, c := range text {
		if c == '.' {
			continue
		}
		if c < '0' || c > '9' || unit == 0 {
			break
		}
		q += int(c-'0') * unit
		unit /= 10
	}
	return min(q, 1000)
}
