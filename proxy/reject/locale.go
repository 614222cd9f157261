package reject

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// language is one whose texts are built in.
type language uint8

const (
	english language = iota
	chinese
	numLanguages
)

var languageTags = [numLanguages]string{"en", "zh-CN"}

// message is a text for clients that does not depend on the reason alone.
type message uint8

const (
	notOrdered message = iota
	unknownYet
	oneOnly
	placedBefore
	notInLine
	comeBack
	goesOn
	lookFirst
	mayReturn
	reloadPage
	signIn
	startsAt
	startsIn
	retryIn
	tryAgain
	goBack
	oneDay
	manyDays
	requestIDLabel
	joinRoom
	lineUp
	numMessages
	noMessage = numMessages
)

// messages are the key of each message in a language's file, and its built-in texts.
var messages = [numMessages]struct {
	key string
	in  [numLanguages]string
}{
	notOrdered: {"not_ordered", [...]string{"This request placed no order, and you were not charged.", "本次请求未下单，未产生扣款。"}},
	unknownYet: {"unknown_yet", [...]string{
		"We do not know yet whether your order was placed. Please check your orders before you order again.",
		"暂时无法确认订单是否成功。请先查看您的订单，不要重复下单。",
	}},
	oneOnly: {"one_only", [...]string{"This request has placed no new order.", "本次请求没有产生新的订单。"}},
	placedBefore: {"placed_before", [...]string{
		"It was placed, and cancelled later. This request has placed no new order. Order again to get a new one.",
		"此前下单成功，之后被取消。本次请求没有产生新的订单；如仍需购买，请重新下单。",
	}},
	notInLine: {"not_in_line", [...]string{"You are not in line.", "您还没有排上队。"}},
	comeBack:  {"come_back", [...]string{"Please try again in a moment.", "请稍后再试。"}},
	goesOn:    {"goes_on", [...]string{"This page refreshes automatically when the sale starts.", "活动开始后，页面会自动刷新。"}},
	lookFirst: {"look_first", [...]string{"Check your orders before you order again.", "再次下单前，请先查看您的订单。"}},
	mayReturn: {"may_return", [...]string{
		"It may become available again if other orders are cancelled.", "如有其他订单取消，商品可能会恢复购买。",
	}},
	reloadPage: {"reload_page", [...]string{
		"Please go back, reload the page and try again.", "请返回并刷新页面，然后重试。",
	}},
	signIn: {"sign_in", [...]string{
		"Sign in at the shop, then open this page again.", "请在商城登录后重新打开本页面。",
	}},
	startsAt:       {"starts_at", [...]string{"Starts on", "开始时间："}},
	startsIn:       {"starts_in", [...]string{"Starts in", "距开始还有"}},
	retryIn:        {"retry_in", [...]string{"Try again in", "请等待"}},
	tryAgain:       {"try_again", [...]string{"Try again", "重试"}},
	goBack:         {"go_back", [...]string{"Back to the shop", "返回商城"}},
	oneDay:         {"day", [...]string{"day", "天"}},
	manyDays:       {"days", [...]string{"days", "天"}},
	requestIDLabel: {"request_id", [...]string{"Request ID:", "请求编号："}},
	joinRoom:       {"join_room", [...]string{"Join the waiting room", "加入排队"}},
	lineUp:         {"line_up", [...]string{"Line up now", "现在就去排队"}},
}

// textKeys are the keys that the file of a language may have: the messages, the reasons for their titles, and the texts
// of a waiting room.
func textKeys() (keys []string) {
	for _, m := range messages {
		keys = append(keys, m.key)
	}
	for reason := Admitted + 1; reason < NumReasons; reason++ {
		keys = append(keys, reason.String())
	}
	keys = slices.AppendSeq(keys, maps.Keys(roomTexts))
	slices.Sort(keys)
	return slices.Compact(keys) // a room says some of the messages, too
}

// locale is one language that is served: texts of a file, and built-in ones where the file has none.
type locale struct {
	tag   string
	base  language          // of the built-in texts
	texts map[string]string // by key; nil = there is no file
}

func (l *locale) title(r Reason) string {
	if own := l.texts[r.String()]; own != "" {
		return own
	}
	return [...]string{english: table[r].en, chinese: table[r].zh}[l.base]
}

// message is the text of m; "" for noMessage.
func (l *locale) message(m message) string {
	if m == noMessage {
		return ""
	}
	if own := l.texts[messages[m].key]; own != "" {
		return own
	}
	return messages[m].in[l.base]
}

// sentences are the title and texts as sentences in one line.
func (l *locale) sentences(title string, texts ...string) string {
	stop, space := ".", " "
	if l.base == chinese || strings.HasPrefix(l.tag, "ja") {
		stop, space = "。", ""
	}
	all := title
	if !strings.HasSuffix(all, stop) {
		all += stop
	}
	for _, text := range texts {
		if text != "" {
			all += space + text
		}
	}
	return all
}

// maxLocales bounds how many languages each request's Accept-Language is compared with.
const maxLocales = 16

// locales are the languages that are served; the first is the default.
type locales []locale

// newLocales are those of tags in their order, then those that have a file.
func newLocales(tags []string, files *templates) (all locales, err error) {
	for _, tag := range append(slices.Clone(tags), files.languages()...) {
		if slices.ContainsFunc(all, func(l locale) bool { return l.tag == tag }) {
			continue
		}
		base := slices.Index(languageTags[:], tag)
		if base < 0 && files.texts[tag] == nil {
			const help = "write en or zh-CN, or put a file %s.toml into template_dir"
			return nil, fmt.Errorf("languages: %q is not known; "+help, tag, tag)
		}
		all = append(all, locale{tag, language(max(base, 0)), files.texts[tag]})
	}
	if len(all) == 0 || len(all) > maxLocales {
		return nil, fmt.Errorf("languages: there are %d; write 1 to %d", len(all), maxLocales)
	}
	return all, nil
}
