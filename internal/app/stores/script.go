package stores

import (
	"fmt"
	"slices"

	"sluice/config"
	"sluice/stockgate/redisconn"
	"sluice/stockgate/script"
	"sluice/stockgate/script/records"
)

// CompileScript is the rule that [stock.script] can be understood, that a cluster has its keys in one slot, and that
// routes name the user where the script needs one.
func CompileScript(c *config.Config) (*script.Script, []error) {
	d := c.Stock.Script
	s, faults := script.Compile(script.Definition{
		Preset: d.Preset, File: d.File, Prefix: c.Stock.Layout.Prefix, Keys: d.Keys, Args: d.Args, Codes: d.Codes,
		GiveBack: d.Release, Take: d.Take, Back: d.Back, Repeatable: d.Idempotent,
	})
	var errs []error
	for _, f := range faults {
		errs = append(errs, c.Errorf("stock.script."+f.Key, "%v", f.Err))
	}
	if s == nil {
		return nil, errs
	}
	if c.Stock.Redis.Topology == redisconn.Cluster {
		if err := s.OneSlot(); err != nil {
			errs = append(errs, c.Errorf("stock.script.keys", "%v", err))
		}
	}
	for i, r := range c.Routes {
		if r.Gate == "reserve" && r.User == "" && s.NeedsUser() {
			errs = append(errs, c.Errorf(fmt.Sprintf("route[%d].user", i+1),
				"is missing: script %q takes for known users alone; write where the user is found, like \"$cookie_uid\"", s.Name()))
		}
	}
	return s, errs
}

// OpenScriptOrders opens the orders that are kept beside a script, for a command; nil = none are.
func OpenScriptOrders(c *config.Config) (*records.Store, func() error, error) {
	if !c.UsesScript() || c.Stock.Script.TTL == 0 {
		return nil, nil, nil
	}
	link, err := redisconn.New(RedisOptions(c))
	if err != nil {
		return nil, nil, c.Errorf("stock.redis", "%v", err)
	}
	return records.New(link, c.Stock.Reserve.Apart), link.Close, nil
}

// DescribesScript tells whether [stock.layout] is about a key that the script works on.
func DescribesScript(c *config.Config) bool {
	if !c.UsesScript() {
		return false
	}
	s, _ := CompileScript(c)
	return s != nil && slices.Contains(s.Templates(), c.Stock.Layout.Key)
}

// ScriptLimitations says which promises of the ledger a script cannot keep.
func ScriptLimitations(s *script.Script) string {
	p, ok := s.Promise()
	if !ok {
		return fmt.Sprintf("script %q keeps what it keeps; max_per_user bounds one order, not a person", s.Name())
	}
	return fmt.Sprintf("preset %q: undersell %s, double buying %s, repeatable %s, give-back twice %s; "+
		"max_per_user bounds one order, not a person",
		s.Name(), p.Undersell, p.DoubleBuying, p.Repeatable, p.GiveBackTwice)
}
