package proxy

import (
	"fmt"
	"slices"

	"sluice/proxy/page"
)

// language is one that the gate knows by itself.
type language uint8

const (
	english language = iota
	chinese
	numLanguages
)

var languageTags = [numLanguages]string{"en", "zh-CN"}

// say is a text in all languages.
func say(en, zh string) [numLanguages]string { return [numLanguages]string{en, zh} }

// phrase is what is said to shoppers whatever the reason: by key, in a file of words.
type phrase struct {
	key string
	in  [numLanguages]string
}

// What a shopper wants to know first, then what to do.
var (
	notOrdered = phrase{"not_ordered", say("Your order was not placed and you were not charged.", "您没有下单成功，也没有被扣款。")}
	unknownYet = phrase{"unknown_yet", say("We do not know yet whether your order was placed. Do not order again: look at your orders first.",
		"暂时无法确认您的订单是否成功。请不要重复下单，先查看您的订单。")}
	oneOnly   = phrase{"one_only", say("This request has placed no other order.", "本次请求没有产生新的订单。")}
	comeBack  = phrase{"come_back", say("Please try again in a moment.", "请稍后再试。")}
	goesOn    = phrase{"goes_on", say("This page goes on by itself when the sale starts.", "活动开始时，本页面会自动跳转。")}
	lookFirst = phrase{"look_first", say("Look at your orders before you order again.", "再次下单前，请先查看您的订单。")}
	startsIn  = phrase{"starts_in", say("Starts in", "距开始还有")}
	retryIn   = phrase{"retry_in", say("Try again in", "请等待")}
	tryAgain  = phrase{"try_again", say("Try again", "重试")}
	goBack    = phrase{"go_back", say("Back to the shop", "返回商店")}
)

var phrases = []phrase{notOrdered, unknownYet, oneOnly, comeBack, goesOn, lookFirst, startsIn, retryIn, tryAgain, goBack}

// tongue is a language as it is spoken: the gate's own words, and those of a file above them.
type tongue struct {
	tag   string
	base  language          // whose words stand in for those that the file lacks
	words map[string]string // by phrase or reason; nil = no file
}

func (t *tongue) title(r Reason) string {
	if own := t.words[r.String()]; own != "" {
		return own
	}
	return refusals[r].title[t.base]
}

func (t *tongue) say(p phrase) string {
	if own := t.words[p.key]; own != "" {
		return own
	}
	return p.in[t.base]
}

// openTongues are those of the configuration in its order, and then those that files brought.
func openTongues(tags []string, book *page.Book) (all []tongue, err error) {
	for _, tag := range append(slices.Clone(tags), book.Languages()...) {
		if slices.ContainsFunc(all, func(t tongue) bool { return t.tag == tag }) {
			continue
		}
		t := tongue{tag: tag, words: book.Words(tag)}
		known := slices.Index(languageTags[:], tag)
		if known < 0 && t.words == nil {
			return nil, fmt.Errorf("languages: %q is not known; en and zh-CN are, and what has a file %s.toml in template_dir", tag, tag)
		}
		t.base = language(max(known, 0))
		all = append(all, t)
	}
	if len(all) == 0 || len(all) > page.MaxLanguages {
		return nil, fmt.Errorf("languages: %d of them; from 1 to %d can be spoken", len(all), page.MaxLanguages)
	}
	return all, nil
}

// wish is how much one language is wanted.
type wish struct {
	fit    int // how close the best range comes to it; 0 = none does
	weight int // the q of that range, in thousandths
	place  int // of that range in the header
}

// speaks picks the language that Accept-Language weighs highest among the served (RFC 9110, section 12.5.4; RFC 4647); the
// first of them when it wants none. The range that comes closest speaks for a language: zh-TW for zh-TW before zh, and zh
// before *. Where zh-TW is not served, it stands for any Chinese: its reader gets on with that better than with English.
func speaks(accept []byte, served []tongue) int {
	if len(accept) == 0 {
		return 0
	}
	var wishes [page.MaxLanguages]wish
	for place := 1; len(accept) > 0; place++ {
		var item []byte
		item, accept = cut(accept, ',')
		tag, params := cut(item, ';')
		tag = trimSpace(tag)
		q := quality(params)
		for i := range served {
			if fit := fits(tag, served[i].tag); fit > wishes[i].fit {
				wishes[i] = wish{fit, q, place}
			}
		}
	}
	best := 0
	for i := 1; i < len(served); i++ {
		if wishes[i].over(wishes[best]) {
			best = i
		}
	}
	return best
}

// over reports a stronger wish. Of equal ones the closer, then the earlier in the header, then the earlier served is taken.
func (w wish) over(other wish) bool {
	switch {
	case w.weight != other.weight:
		return w.weight > other.weight
	case w.weight == 0:
		return false
	case w.place != other.place:
		return w.place < other.place
	}
	return w.fit > other.fit
}

// fits tells how close a range comes to a language: 0 not at all, 1 any language, 2 the same one of another place, 3 the
// same but broader or narrower, 4 the very same.
func fits(tag []byte, served string) int {
	if string(tag) == "*" {
		return 1
	}
	short := min(len(tag), len(served))
	switch {
	case short == 0:
		return 0
	case equalFold(tag[:short], served[:short]):
		if len(tag) == len(served) {
			return 4
		}
		if len(tag) > short && tag[short] == '-' || len(served) > short && served[short] == '-' {
			return 3
		}
	}
	primary, _ := cut(tag, '-')
	if len(primary) <= len(served) && equalFold(primary, served[:len(primary)]) && (len(primary) == len(served) || served[len(primary)] == '-') {
		return 2
	}
	return 0
}

// quality reads ";q=0.8" as 800; 1000 where there is none.
func quality(params []byte) int {
	for len(params) > 0 {
		var item []byte
		item, params = cut(params, ';')
		if item = trimSpace(item); len(item) >= 3 && lower(item[0]) == 'q' && item[1] == '=' {
			return thousandths(item[2:])
		}
	}
	return 1000
}

func thousandths(text []byte) int {
	q, unit := 0, 1000
	for _, c := range text {
		switch {
		case c == '.':
		case c < '0' || c > '9' || unit == 0:
			return min(q, 1000)
		default:
			q += int(c-'0') * unit
			unit /= 10
		}
	}
	return min(q, 1000)
}
