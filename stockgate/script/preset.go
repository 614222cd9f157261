package script

import (
	"embed"
	"fmt"
	"slices"

	"github.com/BurntSushi/toml"
)

// The presets: each is what a shop would write under [stock.script], and the Lua that it names.
//
//go:embed presets/*.lua presets/*.toml
var embedded embed.FS

// presetNames are in the order of the documentation.
func presetNames() []string {
	return []string{"hash_ordered", "hash_bought", "counter_codes", "counter_users", "hash_instock", "hash_instock_script",
		"watch", "lock", "list_users", "variants"}
}

// preset is one file of the folder.
type preset struct {
	File       string            `toml:"file"`
	Keys       []string          `toml:"keys"`
	MaxKeys    int               `toml:"max_keys"` // 0 = so many as Keys
	Args       []string          `toml:"args"`
	MaxArgs    int               `toml:"max_args"` // 0 = so many as Args
	Codes      map[string]string `toml:"codes"`
	GiveBack   string            `toml:"release"`
	Repeatable bool              `toml:"idempotent"`
	Promise    Promise           `toml:"promise"`
}

// Promise is what a preset keeps and what it cannot. Each cell is provoked by a test, and stands in docs/scripts.md.
type Promise struct {
	Undersell     string `toml:"undersell"`       // is a unit lost when Redis' reply is lost?
	DoubleBuying  string `toml:"double_buying"`   // can one user buy twice, by two orders?
	Repeatable    string `toml:"repeatable"`      // does an order that comes again take no second unit?
	GiveBackTwice string `toml:"give_back_twice"` // what comes of giving back the same order twice?
}

// shared begins the Lua of every preset.
const shared = "shared.lua"

// readPreset finds a preset by its name.
func readPreset(name string) (p preset, err error) {
	if !slices.Contains(presetNames(), name) {
		return p, fmt.Errorf("%q is not known", name)
	}
	text := embeddedText(name + ".toml")
	if _, err := toml.Decode(text, &p); err != nil {
		panic("BUG: preset " + name + ": " + err.Error())
	}
	return p, nil
}

// luaOf is a preset's Lua, with what all of them share.
func luaOf(file string) lua { return newLua(file, embeddedText(shared)+embeddedText(file)) }

func embeddedText(file string) string {
	text, err := embedded.ReadFile("presets/" + file)
	if err != nil {
		panic("BUG: " + err.Error())
	}
	return string(text)
}
