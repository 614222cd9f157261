package proxy

type language uint8

const (
	english language = iota
	chinese
	numLanguages
)

var languageTags = [numLanguages]string{"en", "zh-CN"}

// say is a text in all languages.
func say(en, zh string) [numLanguages]string { return [numLanguages]string{en, zh} }

// What a shopper wants to know first, then what to do.
var (
	notOrdered = say("Your order was not placed and you were not charged.", "您没有下单成功，也没有被扣款。")
	unknownYet = say("We do not know yet whether your order was placed. Do not order again: look at your orders first.",
		"暂时无法确认您的订单是否成功。请不要重复下单，先查看您的订单。")
	oneOnly  = say("This request has placed no other order.", "本次请求没有产生新的订单。")
	comeBack = say("Please try again in a moment.", "请稍后再试。")
)

// speaks picks the language that Accept-Language weighs highest among the served (RFC 9110, section 12.5.4);
// the first of them when it names none. It reads primary subtags only: zh, zh-TW and zh-Hans are all Chinese.
func speaks(accept []byte, served []language) language {
	best, weight := served[0], -1
	for len(accept) > 0 {
		var item []byte
		item, accept = cut(accept, ',')
		tag, params := cut(item, ';')
		q := quality(params)
		if q <= weight || q == 0 {
			continue
		}
		primary, _ := cut(trimSpace(tag), '-')
		for _, l := range served {
			if string(primary) == "*" || equalFold(primary, languageTags[l][:2]) {
				best, weight = l, q
				break
			}
		}
	}
	return best
}

// quality reads ";q=0.8" as 800; 1000 where there is none.
func quality(params []byte) int {
	params = trimSpace(params)
	if len(params) < 3 || lower(params[0]) != 'q' || params[1] != '=' {
		return 1000
	}
	q, unit := 0, 1000
	for _, c := range params[2:] {
		switch {
		case c == '.':
		case c < '0' || c > '9' || unit == 0:
			return q
		default:
			q += int(c-'0') * unit
			unit /= 10
		}
	}
	return min(q, 1000)
}
