package e2e

import (
	"os/exec"
	"strings"
	"testing"

	"sluice/internal/redistest"
)

// command runs the binary on the control API of a gate, and returns what it prints and whether it succeeds.
func (g *running) command(args ...string) (text string, good bool) {
	out, err := exec.Command(binary, append(args, "--admin", g.admin)...).CombinedOutput()
	return string(out), err == nil
}

// prints wants a command to succeed, and to print these texts.
func (g *running) prints(t *testing.T, args string, texts ...string) (out string) {
	t.Helper()
	out, good := g.command(strings.Fields(args)...)
	if !good {
		t.Fatalf("%s: %s", args, out)
	}
	wants(t, out, texts...)
	return out
}

// signed is a setting of the secret that the instances of a shop share.
func signed(t *testing.T) string {
	t.Helper()
	return "stock.reserve.secret_file = " + quotedText(keep(t, "secret", "the secret of all instances of one shop"))
}

// mostInFlight is the concurrency limit in force.
func (g *running) mostInFlight() float64 { return g.metric("sluice_upstream_in_flight_limit") }

// One command changes all instances, also one that starts late. What is known holds while Redis is away, and after it
// has come back empty.
func TestFleet_OverridesHoldOnAllInstances(t *testing.T) {
	t.Parallel()
	r, shop := redistest.Start(t), open(t, nil)
	secret := signed(t)
	begin := func() *running { return gate(t, redisAt(r), shop.setting(), unlimited, secret) }
	a, b := begin(), begin()
	all := func(what string, want float64, gates ...*running) {
		t.Helper()
		for _, g := range gates {
			soon(t, what, func() bool { return g.mostInFlight() == want })
		}
	}
	a.prints(t, "override set limits.concurrency.max_in_flight 7 --for 10m", "all instances", "7", "then 256 again")
	all("both have the override", 7, a, b)
	b.prints(t, "override set limits.concurrency.max_in_flight 7 --for 10m", "7 was in force already")
	c := begin()
	if n := c.mostInFlight(); n != 7 {
		t.Errorf("a late starter is ready with %v in flight, want 7", n)
	}
	b.prints(t, "override set limits.concurrency.max_in_flight 9 --for 10m --instance", "this instance")
	all("one instance has its own", 9, b)
	all("the others do not", 7, a, c)

	r.Kill()
	for _, g := range []*running{a, b, c} {
		soon(t, "the loss is known", func() bool { return g.metric("sluice_fleet_up") == 0 })
	}
	if out, good := a.command("override", "set", "mode", "observe", "--for", "10m"); good ||
		!strings.Contains(out, "nothing is changed") {
		t.Errorf("with Redis away: %s", out)
	}
	a.prints(t, "override set limits.concurrency.max_queue 3 --for 10m --instance", "this instance")
	r.Restart() // empty
	for _, g := range []*running{a, b, c} {
		soon(t, "Redis is reached", func() bool { return g.metric("sluice_fleet_up") == 1 })
	}
	all("what was known holds", 7, a, c)
	soon(t, "it was put back", func() bool {
		return strings.Contains(a.log.String()+b.log.String()+c.log.String(), "they were put back")
	})
	var listed struct {
		Overrides []struct{ ID, Key, Scope string }
	}
	c.told("GET", "/overrides", "", &listed)
	if len(listed.Overrides) != 1 || listed.Overrides[0].Scope != "fleet" {
		t.Fatalf("%+v", listed)
	}
	c.prints(t, "override undo "+listed.Overrides[0].ID, "256 again")
	all("it is undone on all", 256, a, c)
	all("but for the instance's own", 9, b)

	c.prints(t, "override set mode observe --for 10m", "all instances")
	for _, g := range []*running{a, b, c} {
		soon(t, "all observe", func() bool {
			var now struct{ Mode string }
			g.told("GET", "/status", "", &now)
			return now.Mode == "observe"
		})
	}
}

// What is written into Redis by hand, or by an instance with another secret, changes nothing, and the log says so. An
// instance without a secret cannot change the others.
func TestFleet_OverrideWithoutTheSecretIsIgnored(t *testing.T) {
	t.Parallel()
	r, shop := redistest.Start(t), open(t, nil)
	a := gate(t, redisAt(r), shop.setting(), unlimited, signed(t))
	open := gate(t, redisAt(r), shop.setting(), unlimited)
	foreign := gate(t, redisAt(r), shop.setting(), unlimited,
		"stock.reserve.secret_file = "+quotedText(keep(t, "secret", "the secret of another shop, by the same name")))
	foreign.prints(t, "override set limits.concurrency.max_queue 3 --for 10m", "all instances")
	r.Client.HSet(t.Context(), "sluice:shop:fleet:{shop}:changes", "key mode",
		`9 99999999999999 99999999999999 on - {"key": "mode", "value": "observe"}`, "#version", "9 by hand")
	for _, g := range []*running{a, open} {
		soon(t, "the log says that it is ignored", func() bool { return strings.Contains(g.log.String(), "it is ignored") })
		var now struct{ Mode string }
		if g.told("GET", "/status", "", &now); now.Mode != "enforce" {
			t.Errorf("the mode is %s", now.Mode)
		}
		if out := g.control("GET", "/api/v1/overrides", "").body; !strings.Contains(out, `"overrides":[]`) {
			t.Errorf("an override is in force: %s", out)
		}
	}
	if out, good := open.command("override", "set", "mode", "observe", "--for", "10m"); good ||
		!strings.Contains(out, "secret_file") || !strings.Contains(out, "--instance") {
		t.Errorf("without a secret: %s", out)
	}
	if out, good := open.command("drain", "--fleet"); good || !strings.Contains(out, "secret_file") {
		t.Errorf("a drain without a secret: %s", out)
	}
	open.prints(t, "override set mode observe --for 10m --instance", "this instance")
}

const perUser = `[[limits.rate]]
name = "per_user"
key = "$cookie_uid"
rate = "1/m"
burst = 2
`

// One key of a rate is shown and reset on all instances, and all of them are shown, and drain.
func TestFleet_ShowsAndResetsKeysAndDrains(t *testing.T) {
	t.Parallel()
	r, shop := redistest.Start(t), open(t, nil)
	secret := signed(t)
	begin := func(more string) *running {
		return gate(t, redisAt(r), shop.setting(), unlimited, secret, more+perUser+fleetRoute)
	}
	a, b := begin(""), begin("")
	for _, g := range []*running{a, b} {
		for range 4 {
			g.ask("GET", "/page", "Cookie: uid=u1")
		}
		g.wantMetric(1, "sluice_rate_nearly_limited_total", `rate="per_user"`) // the last of two that were admitted
	}
	fleet := func(args, text string) { // an instance that is late is missing in what is printed
		t.Helper()
		soon(t, args+" tells of two instances", func() bool {
			out, good := a.command(strings.Fields(args)...)
			return good && strings.Count(out, text) == 2
		})
	}
	fleet("limit show per_user u1", "0 of 2 left")
	if out := a.prints(t, "limit show per_user u1 --instance"); strings.Count(out, "\n") != 1 {
		t.Errorf("want one instance:\n%s", out)
	}
	fleet("limit reset per_user u1", "reset, 2 of 2 left")
	if out, good := a.command("limit", "reset", "per_usr", "u1"); good || !strings.Contains(out, `"per_user"`) {
		t.Errorf("a limit that is not there: %s", out)
	}
	fleet("status --fleet", "ready")
	a.prints(t, "status --fleet", "VERSION")
	d := begin("limits.concurrency.max_queue = 99\n")
	soon(t, "the configurations differ", func() bool {
		out, good := a.command("status", "--fleet")
		return !good && strings.Contains(out, "differ in config") && strings.Count(out, "\n") == 5
	})
	a.prints(t, "drain --fleet", "draining")
	for _, g := range []*running{a, b, d} {
		if code := g.stopped(); code != 0 {
			t.Errorf("exit code %d", code)
		}
	}
	if again := begin(""); !again.ready() {
		t.Error("one that starts after the drain does not serve")
	}
}
