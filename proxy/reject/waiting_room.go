package reject

import (
	_ "embed" // for the built-in page
	"fmt"
	"slices"
)

//go:embed waiting_room.html
var builtInRoomPage string

// roomPage is the name of the files of the page of a waiting room: waiting_room.html and waiting_room.TAG.html.
const roomPage = "waiting_room"

// roomTerms are what the page of a waiting room may name. A condition is that of a placeholder which is not empty, but
// for the states.
var roomTerms = vocabulary{
	[]string{"lang", "title", "room", "phase", "state", "ahead", "ahead_text", "eta", "eta_text", "chance_text", "note",
		"message", "refresh", "refresh_text", "action", "button", "back", "back_label", "verify", "verify_label"},
	append([]string{"ahead", "eta", "chance", "note", "message", "refresh", "action", "verify"}, roomStates...),
}

// roomStates are what the page of a waiting room shows.
var roomStates = []string{"join", "waiting", "called", "missed", "passed", "over", "off"}

// roomTexts are the texts of this page by their keys in a language's file. {n} stands for a number, {time} for a time
// such as "90 seconds".
var roomTexts = map[string][numLanguages]string{
	"room_join":      {"Please join the line", "请排队等候"},
	"room_waiting":   {"You are waiting", "您正在排队"},
	"room_called":    {"It is your turn", "轮到您了"},
	"room_missed":    {"You were called and did not come in time", "您错过了叫号"},
	"room_passed":    {"You can order now", "您可以下单了"},
	"room_over":      {"Sold out", "商品已售罄"},
	"room_ended":     {"The sale is over", "活动已结束"},
	"room_off":       {"There is no waiting now", "无需排队"},
	"room_take_pass": {"Take my pass", "领取通行证"},
	"room_back":      {"Back to the item", "返回商品页面"},
	"room_next":      {"You are next.", "下一位就是您。"},
	"room_ahead":     {"About {n} people are before you.", "前面大约还有 {n} 人。"},
	"room_ahead_one": {"1 person is before you.", "前面还有 1 人。"},
	"room_eta":       {"About {time} to wait.", "预计等待约 {time}。"},
	"room_until":     {"You have {time} to take your pass.", "请在 {time}内领取通行证。"},
	"room_early":     {"The sale starts in about {time}. People are called after its start.", "活动约 {time}后开始，开始后叫号。"},
	"room_closed": {"The waiting room opens in about {time}. This page refreshes automatically.",
		"约 {time}后开放排队，页面会自动刷新。"},
	"room_drawing": {"The draw has not been made yet.", "正在等待抽签。"},
	"room_hold":    {"No people are called for the moment.", "叫号已暂停。"},
	"room_drain":   {"No new people are taken in now.", "目前不再接受新的排队。"},
	"room_last": {"All that is left is in the orders of other people; some of it may come back.",
		"剩余商品都在其他顾客的订单中，如有取消会继续叫号。"},
	"room_chance": {"By the units that are left you will probably not get one.", "按目前库存，您可能买不到了。"},
	"room_order_soon": {"Order within {time} of taking your pass; after that your unit may go to the next person.",
		"请在领取通行证后 {time}内下单，逾期名额可能让给下一位。"},
	"room_refresh": {"Keep this page open; it refreshes automatically. When it is your turn you have {time}. " +
		"Your place is kept.",
		"请保持页面打开，页面会自动刷新。轮到您时，请在 {time}内领取通行证。您的位置会一直保留。"},
	"room_verify":           {"Check the draw", "核对抽签结果"},
	"room_second":           {"1 second", "1 秒"},
	"room_seconds":          {"{n} seconds", "{n} 秒"},
	"room_minutes":          {"{n} minutes", "{n} 分钟"},
	"room_hours":            {"{n} hours", "{n} 小时"},
	messages[notInLine].key: messages[notInLine].in,
	messages[mayReturn].key: messages[mayReturn].in,
	messages[joinRoom].key:  messages[joinRoom].in,
}

// RoomPages are the page of waiting rooms in each language. They do not change.
type RoomPages []RoomPage

// RoomPage is the page in one language.
type RoomPage struct {
	locale
	page template
}

// NewRoomPages are those by the files and languages of o. Its errors are those of New.
func NewRoomPages(o Options) (RoomPages, error) {
	files, err := newTemplates(o.Pages)
	if err != nil {
		return nil, err
	}
	all, err := newLocales(o.Languages, files)
	if err != nil {
		return nil, err
	}
	builtIn, err := parse("built-in waiting room", builtInHead+builtInRoomPage, roomTerms)
	if err != nil {
		panic("BUG: " + err.Error())
	}
	var pages RoomPages
	for _, l := range all {
		p := RoomPage{l, builtIn}
		for _, name := range []string{roomPage, roomPage + "." + l.tag} {
			if own, ok := files.pages[name]; ok {
				p.page = own
			}
		}
		pages = append(pages, p)
	}
	return pages, nil
}

// In is the page in the language that Accept-Language prefers.
func (p RoomPages) In(accept []byte) *RoomPage {
	all := make(locales, len(p))
	for i := range p {
		all[i] = p[i].locale
	}
	return &p[all.choose(accept)]
}

// Lang is the language's tag.
func (p *RoomPage) Lang() string { return p.tag }

// Text is one of the texts, by its key in a language's file.
func (p *RoomPage) Text(key string) string {
	if own := p.texts[key]; own != "" {
		return own
	}
	text, ok := roomTexts[key]
	if !ok {
		panic("BUG: the waiting room has no text " + key)
	}
	return text[p.base]
}

// Sentences joins texts as this language does, each with its stop.
func (p *RoomPage) Sentences(first string, more ...string) string { return p.sentences(first, more...) }

// Render fills in values, which it escapes, by their placeholders. A value that is missing is empty. The value of
// "state" is one of the states of the page, and "chance_text" the condition "chance".
func (p *RoomPage) Render(values map[string]string) []byte {
	escaped, holds := map[string]string{}, map[string]bool{}
	for _, name := range roomTerms.placeholders {
		escaped[name] = string(appendEscaped(nil, values[name], HTML))
	}
	for _, name := range roomTerms.conditions {
		holds[name] = values[name] != ""
	}
	for _, state := range roomStates {
		holds[state] = values["state"] == state
	}
	holds["chance"] = values["chance_text"] != ""
	var out []byte
	for _, s := range p.page.body(escaped, holds) {
		out = append(out, s.text...)
	}
	return out
}

// parseRoomPage reads a page of a waiting room, which must work without a script.
func parseRoomPage(at, text string) (template, error) {
	t, err := parse(at, text, roomTerms)
	if err != nil {
		return nil, err
	}
	for _, needed := range []string{"action", "button", "refresh", "back"} {
		if !slices.ContainsFunc(t, func(p part) bool { return p.kind == valuePart && p.name == needed }) {
			return nil, fmt.Errorf("%s: $%s is missing: the page must work without a script; write it as the built-in page does",
				at, needed)
		}
	}
	return t, nil
}
