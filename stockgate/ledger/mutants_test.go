package ledger

import (
	"maps"
	"strings"
	"testing"

	"sluice/internal/redistest"
	"sluice/internal/testkit"
)

// mutant is a mistake that somebody could make in a script.
type mutant struct {
	script   string
	old, new string // old occurs exactly once
}

func mutants() map[string]mutant {
	return map[string]mutant{
		"stock before idempotency":           {"reserve", "	if record then\n", "	if record and quantity <= free then\n"},
		"sale before idempotency":            {"reserve", "	if record then\n", "	if record and stock.state == 'on' then\n"},
		"no idempotency":                     {"reserve", "fresh[serial] or records[i]", "fresh[serial]"},
		"a serial twice in a batch":          {"reserve", "fresh[serial] or records[i]", "records[i]"},
		"no epoch check":                     {"reserve", "if epoch ~= stock.epoch and", "if false and"},
		"only older epochs are stale":        {"reserve", "epoch ~= stock.epoch", "epoch < stock.epoch"},
		"no user limit":                      {"reserve", "elseif stock.limit > 0 and", "elseif false and"},
		"a limit for nobody":                 {"reserve", "and user ~= '' and", "and"},
		"a limit on what is asked for alone": {"reserve", "had + quantity > stock.limit", "quantity > stock.limit"},
		"a user twice in a batch":            {"reserve", "units[user] or has", "has"},
		"a limit that is one too high": {
			"reserve",
			"had + quantity > stock.limit",
			"had + quantity > stock.limit + 1",
		},
		"free is counted once a batch": {
			"reserve",
			"free, stock.held = free - quantity,",
			"free, stock.held = free,",
		},
		"one unit too many":                {"reserve", "elseif quantity > free then", "elseif quantity > free + 1 then"},
		"the last unit is never sold":      {"reserve", "elseif quantity > free then", "elseif quantity >= free then"},
		"sold although paused":             {"reserve", "elseif not on_sale then", "elseif stock.state == 'ended' then"},
		"any content is a replay":          {"reserve", "if who ~= user or had", "if false and had"},
		"another user's order is a replay": {"reserve", "who ~= user or had", "had"},
		"another cart is a replay":         {"reserve", "had ~= wanted and", "units ~= units_of(R, wanted) and"},
		"an adopted order is no cart's":    {"reserve", " and match(had, '^%d+/%?') ~= match(wanted, '^%d+') .. '/?'", ""},
		"adopt by the cart of before":      {"finish", "then text = dated(quantity, version)", "then text = text"},
		"a released serial is taken again": {
			"reserve",
			"	if record then\n",
			"	if record and not string.find(record, '^X') then\n",
		},
		"a refunded serial is held": {"reserve", "if state == 'X' or state == 'R' then", "if state == 'X' then"},
		"a loser writes": {
			"reserve",
			"code = USER_LIMIT",
			"redis.call('HSETNX', U, user, '0') code = USER_LIMIT",
		},
		"a hold without a deadline": {"reserve", "due[place + 1], due[place + 2] = deadline, serial\n", "\n"},
		"held is not counted": {
			"reserve",
			"stock.held = free - quantity, stock.held + quantity",
			"stock.held = free - quantity, stock.held",
		},
		"units are not counted": {"reserve", "= had + quantity, record", "= units[user], record"},

		"release without a tombstone":   {"finish", "release = {none = 'X'", "release = {none = NOT_FOUND"},
		"release without a state check": {"finish", "C = WAS_SOLD", "C = 'X'"},
		"confirm of what was released": {
			"finish",
			"confirm = {none = NOT_FOUND, H = 'C', C = ALREADY, X = WAS_RELEASED",
			"confirm = {none = NOT_FOUND, H = 'C', C = ALREADY, X = 'C'",
		},
		"confirm of what was refunded": {
			"finish",
			"X = WAS_RELEASED, R = WAS_RELEASED}",
			"X = WAS_RELEASED, R = ALREADY}",
		},
		"refund only what is sold":      {"finish", "H = 'R', C = 'R'", "H = NOT_FOUND, C = 'R'"},
		"refund twice":                  {"finish", "X = WAS_RELEASED, R = ALREADY}", "X = WAS_RELEASED, R = 'R'}"},
		"a refund looks like a release": {"finish", "H = 'R', C = 'R'", "H = 'X', C = 'X'"},
		"adopt respects tombstones": {
			"finish",
			"C = ALREADY, X = 'C', R = 'C'}",
			"C = ALREADY, X = WAS_RELEASED, R = 'C'}",
		},
		"adopt without an alarm": {"finish", "answer = OVER_TOTAL", "answer = CHANGED"},
		"adopt by the tombstone's content": {
			"finish",
			"if op == 'adopt' and from ~= 'H' then",
			"if op == 'adopt' and from == 'none' then",
		},
		"adopt sold for another user": {
			"finish",
			"if op == 'adopt' and from ~= 'H' then",
			"if op == 'adopt' then",
		},
		"numbers that orders leave as they are": {"stock", "if c.orders then", "if true then"},
		"a hold counts although sold": {
			"finish",
			"		if from == 'H' then stock.held = stock.held - quantity else units",
			"		if from ~= 'H' then units",
		},
		"a refund leaves it sold":           {"finish", "if from == 'C' then stock.sold", "if false then stock.sold"},
		"a user's units do not come back":   {"finish", "if from ~= 'none' then units", "if from == 'C' then units"},
		"adopted units are nobody's":        {"finish", "else units[user] = has(user) + quantity end", "end"},
		"confirmed yet due":                 {"finish", "		undue[settled] = serial\n", ""},
		"a tombstone without a time":        {"finish", "		push(c.due, keep, serial)\n", ""},
		"a user twice in a batch, finished": {"finish", "units[user] or number", "number"},
		"a serial twice in a batch, done":   {"finish", "fresh[serial] or records[i]", "records[i]"},

		"sweep releases": {
			"sweep",
			"redis.call('ZADD', X, unpack(leases))",
			"redis.call('ZREM', X, leases[2])",
		},
		"sweep does not lease":           {"sweep", "if #leases > 0 then", "if false then"},
		"sweep without a bound":          {"sweep", "if #leases < 2 * most then", "if true then"},
		"sweep ahead of time":            {"sweep", "'-inf', now", "'-inf', now + 1"},
		"sweep forgets no record":        {"sweep", "	redis.call('HDEL', R, unpack(gone))\n", ""},
		"sweep forgets no time":          {"sweep", "	redis.call('ZREM', X, unpack(gone))\n", ""},
		"sweep keeps what was refunded":  {"sweep", "state == 'X' or state == 'R'", "state == 'X'"},
		"a total below what is taken":    {"set_total", "total < stock.held + stock.sold", "total < stock.sold"},
		"a total that forgets the limit": {"set_total", "stock.total, stock.limit = total, limit", "stock.total = total"},
		"a total that seeds anew": {
			"set_total",
			"stock.total, stock.limit = total, limit",
			"stock.total, stock.limit, stock.held = total, limit, 0",
		},
		"a total that opens": {
			"set_total",
			"stock.total, stock.limit = total, limit",
			"stock.total, stock.limit, stock.state = total, limit, 'on'",
		},
		"a total that says nothing": {
			"set_total",
			"if total ~= stock.total or limit ~= stock.limit then",
			"if true then",
		},
		"freezing without an epoch": {"mark", "		stock.epoch = stock.epoch + 1\n", ""},
		"every state is an epoch": {
			"set_state",
			"	stock.state = state\n",
			"	stock.state, stock.epoch = state, stock.epoch + 1\n",
		},
		"a state that is only said": {"set_state", "	stock.state = state\n", ""},
		"look without a ledger": {
			"read_stock",
			"return stock and whole(stock, 1)",
			"return whole(stock or {total=0, held=0, sold=0, limit=0, epoch=0, ver=0, state=''}, 1)",
		},
		"keys expire": {
			"stock",
			"	if #gone > 0 then",
			"	redis.call('PEXPIRE', R, 3600000)\n	if #gone > 0 then",
		},
		"no version":              {"stock", "	stock.ver = stock.ver + 1\n", "	stock.ver = stock.ver + 2\n"},
		"events without records":  {"stock", "'closes', closes, unpack(c.fields))", "'closes', closes)"},
		"users with 0 units stay": {"stock", "		if n == 0 then\n", "		if false then\n"},
		"the state is not kept":   {"stock", "'state', state, 'epoch'", "'epoch'"},
		"times are not kept":      {"stock", "	if #c.due > 0 then", "	if false then"},
		"a free that counts no hold": {
			"stock",
			"reply[3] = stock.total - stock.held - stock.sold,",
			"reply[3] = stock.total - stock.sold,",
		},
	}
}

// newer are mistakes in what operators ask for.
func newer() map[string]mutant {
	return map[string]mutant{
		"sold one ms too early": {"reserve", "now >= stock.opens", "now >= stock.opens - 1"},
		"sold one ms too late":  {"reserve", "now < stock.closes", "now <= stock.closes"},
		"never over":            {"reserve", "(stock.closes == 0 or now < stock.closes)", "true"},
		"hours without an end": {
			"set_schedule",
			"stock.opens, stock.closes = opens, closes",
			"stock.opens = opens",
		},
		"the same hours are news": {"set_schedule", "if opens ~= stock.opens or", "if true or"},
		"a kept limit is none": {
			"set_total",
			"if limit < 0 then limit = stock.limit end",
			"if limit < 0 then limit = 0 end",
		},
		"a new ledger without a limit": {"set_total", "if not new or redis", "if redis"},
		"less is left than what is taken": {
			"add",
			"stock.total + difference < stock.held + stock.sold",
			"stock.total + difference < stock.sold",
		},
		"an id counts each time": {"add", "if id ~= '' and before == id then", "if false then"},
		"an id for anything":     {"add", "tonumber(by) == difference and 1 or 2", "1"},
		"an id that is forgotten": {
			"add",
			"	redis.call('HSET', S, 'added', table",
			"	redis.call('HSET', S, 'added', '') local _ = (table",
		},
		"an id that the stream does not tell": {"add", "	push(c.fields, 'added', words[#words])\n", ""},
		"only the newest id":                  {"add", "math.max(1, #words - most + 1)", "#words"},
		"a refused id counts": {
			"add",
			"	return whole(stock, 0)\n",
			"	redis.call('HSET', S, 'added', id .. '=' .. ARGV[2])\n	return whole(stock, 0)\n",
		},
		"the id ends at the first equality sign": {"add", "'^(.*)=(%-?%d+)$'", "'^(.-)=(.+)$'"},
	}
}

// enough schedules are played before a mutant counts as not found.
const enough = 500

func TestMutants_SuiteFindsEveryMutantOfTheScripts(t *testing.T) {
	testkit.Nightly(t, "it tests the tests")
	t.Parallel()
	server := redistest.Start(t)
	all := make([][]step, enough)
	for seed := range all {
		all[seed] = schedules().Example(seed)
	}
	every := mutants()
	maps.Copy(every, newer())
	for name, m := range every {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			broken, whole := newStage(t, server, m.apply(t)), newStage(t, server, texts())
			for n, steps := range all {
				if err := broken.play(steps); err == nil {
					continue
				}
				testkit.Check(t, whole.play(steps)) // or it would find a mistake in everything
				t.Logf("found by schedule %d", n+1)
				return
			}
			t.Errorf("%d schedules do not notice", enough)
		})
	}
}

func (m mutant) apply(t *testing.T) map[string]string {
	t.Helper()
	all := maps.Clone(texts())
	if n := strings.Count(all[m.script], m.old); n != 1 {
		t.Fatalf("%q occurs %d times in %s", m.old, n, m.script)
	}
	all[m.script] = strings.Replace(all[m.script], m.old, m.new, 1)
	return all
}
