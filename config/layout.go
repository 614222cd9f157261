package config

import (
	"fmt"
	"slices"
	"strings"
)

// Layout is how the shop keeps its stock in Redis.
type Layout struct {
	Type         string   `toml:"type" words:"counter hash_sold hash_left counter_users list script"`
	Key          string   `toml:"key"`         // a template with $sku, or its parts $sku_1 to $sku_3
	TotalField   string   `toml:"total_field"` // hash_sold; with $sku where key has none, as the other fields
	SoldField    string   `toml:"sold_field"`  // hash_sold
	LeftField    string   `toml:"left_field"`  // hash_left
	StatusKey    string   `toml:"status_key"`
	StatusField  string   `toml:"status_field"` // of the hash; not with StatusKey
	StatusOpen   []string `toml:"status_open"`
	StatusClosed string   `toml:"status_closed"`
	UsersKey     string   `toml:"users_key"`                // a template with $sku; "" = none
	SoldOutAt    int      `toml:"sold_out_at" unit:"units"` // this or less is sold out
	SoldOutKey   string   `toml:"sold_out_key"`             // a template with $sku; "" = none
	Prefix       string   `toml:"prefix"`
	ScriptFile   string   `toml:"script_file"` // script
	Script       string   // what ScriptFile holds
}

func defaultLayout() Layout {
	return Layout{
		Type:         "counter",
		Key:          "seckill:stock:$sku",
		TotalField:   "total",
		SoldField:    "ordered",
		LeftField:    "inStock",
		StatusOpen:   []string{"1"},
		StatusClosed: "0",
	}
}

func (l *Layout) check(r *report) {
	l.checkFields(r)
	switch l.Type {
	case "hash_sold":
		r.Filled("stock.layout.total_field", l.TotalField)
		r.Filled("stock.layout.sold_field", l.SoldField)
	case "hash_left":
		r.Filled("stock.layout.left_field", l.LeftField)
	case "counter_users":
		r.Filled("stock.layout.users_key", l.UsersKey)
	case "script":
		r.Filled("stock.layout.script_file", l.ScriptFile)
	}
	l.checkStatus(r)
	l.checkUsers(r)
	if l.SoldOutKey != "" {
		skuKey(r, "stock.layout.sold_out_key", l.SoldOutKey)
	}
}

// checkFields wants $sku in the key, or in all fields that hold numbers of a hash that many SKUs share.
func (l *Layout) checkFields(r *report) {
	fields := map[string]map[string]string{
		"hash_sold": {"total_field": l.TotalField, "sold_field": l.SoldField},
		"hash_left": {"left_field": l.LeftField},
	}[l.Type]
	shared := false
	for _, text := range fields {
		shared = shared || len(variablesOf(text)) > 0
	}
	if !shared {
		skuKey(r, "stock.layout.key", l.Key)
	} else {
		r.Variables("stock.layout.key", l.Key, skuNames()...)
	}
	for name, text := range map[string]string{"total_field": l.TotalField, "sold_field": l.SoldField,
		"left_field": l.LeftField, "status_field": l.StatusField} {
		r.Variables("stock.layout."+name, text, skuNames()...)
	}
	for name, text := range fields {
		if shared && len(variablesOf(l.Key)) == 0 && len(variablesOf(text)) == 0 {
			r.Fail("stock.layout."+name, "%q has no $sku, and key has none: all SKUs would share it; write it like %q", text,
				"$(sku)_"+text)
		}
	}
}

// checkUsers wants a key of which only the SKU is not known.
func (l *Layout) checkUsers(r *report) {
	const key = "stock.layout.users_key"
	r.Rule(key, "text with $sku, or $sku_1 to $sku_3")
	r.Variables(key, l.UsersKey, skuNames()...)
}

// SharesUsers reports whether UsersKey is one set for several SKUs, of which a user may buy one.
func (l *Layout) SharesUsers() bool {
	return l.UsersKey != "" && len(variablesOf(l.UsersKey)) == 0
}

func (l *Layout) checkStatus(r *report) {
	r.Variables("stock.layout.status_key", l.StatusKey, skuNames()...)
	if l.StatusKey != "" && l.StatusField != "" {
		r.Fail("stock.layout.status_field", "says where the status is, and so does status_key; drop one")
	}
	if l.StatusField != "" && !strings.HasPrefix(l.Type, "hash_") {
		r.Fail("stock.layout.status_field", "is a field of a hash, but type is %q; write status_key", l.Type)
	}
	if (l.StatusKey != "" || l.StatusField != "") && len(l.StatusOpen) == 0 {
		r.Fail("stock.layout.status_open", "is empty: no SKU would ever be on sale; write the values that mean open")
	}
}

// skuKey wants a Redis key that differs from SKU to SKU.
func skuKey(r *report, key, template string) {
	r.Rule(key, "text with $sku, or $sku_1 to $sku_3")
	names := variablesOf(template)
	if len(names) == 0 {
		r.Fail(key, "%q has no $sku: all SKUs would share it; write it like \"seckill:stock:$sku\"%s", template,
			ofOneProduct(key, template))
	}
	r.Variables(key, template, skuNames()...)
}

// ofOneProduct is the way out for a shop that sells one product, whose key has a fixed name: the end of that name is
// the SKU.
func ofOneProduct(key, template string) string {
	colon := strings.LastIndexByte(template, ':') + 1
	if key != "stock.layout.key" || colon == len(template) || strings.ContainsAny(template[colon:], "{} $") {
		return ""
	}
	return fmt.Sprintf("; for a shop with one product write key = %q, and sku = %q in its [[route]]",
		template[:colon]+"$sku", template[colon:])
}

// skuNames are what a key may name: the SKU, and its parts between colons.
func skuNames() []string { return []string{"sku", "sku_1", "sku_2", "sku_3"} }

// readScript reads the shop's script. A relative path starts from the configuration's folder.
func (l *Layout) readScript(r *report, folder string) {
	const key = "stock.layout.script_file"
	switch {
	case l.ScriptFile == "":
		return
	case l.Type != "script":
		r.Fail(key, "is read with type \"script\", but type is %q; write that, or drop this", l.Type)
		return
	}
	l.Script = r.Lua(key, folder, l.ScriptFile)
}

// checkMirror wants a key of the shop that can show what a ledger has free.
func (s *Stock) checkMirror(r *report) {
	const key = "stock.reserve.write_back"
	shows := []string{"counter", "counter_users", "hash_left", "hash_sold"}
	switch {
	case !s.Reserve.WriteBack:
	case s.Source != "redis":
		r.Fail(key, "writes into the shop's Redis, but stock.source is %q; write \"redis\", or drop this", s.Source)
	case slices.Contains(s.Layout.StatusOpen, s.Layout.StatusClosed):
		r.Fail("stock.layout.status_closed", "%q is in status_open, too; write the value that means that a sale is paused "+
			"or over", s.Layout.StatusClosed)
	case !slices.Contains(shows, s.Layout.Type):
		r.Fail(key, "cannot write a %q: stock.layout.type must be \"counter\", \"counter_users\", \"hash_left\" or "+
			"\"hash_sold\"", s.Layout.Type)
	}
}
