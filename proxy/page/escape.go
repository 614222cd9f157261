package page

import (
	"encoding/json"
	"reflect"
	"strings"
)

var htmlEscapes = strings.NewReplacer("\x00", "\uFFFD", `"`, "&#34;", "&", "&amp;", "'", "&#39;", "+", "&#43;", "<", "&lt;", ">", "&gt;")

// inHTML is for text and for quoted values of attributes.
func inHTML(v reflect.Value) string { return htmlEscapes.Replace(textOf(v)) }

// What would end a string, a line or the script is told by its number.
var scriptEscapes = strings.NewReplacer("\x00", `\u0000`, "\t", `\t`, "\n", `\n`, "\v", `\u000b`, "\f", `\f`, "\r", `\r`, `"`, `\u0022`, "'", `\u0027`, "`", `\u0060`,
	"&", `\u0026`, "+", `\u002b`, "/", `\/`, "<", `\u003c`, ">", `\u003e`, `\`, `\\`, "\u2028", `\u2028`, "\u2029", `\u2029`)

// inScriptQuotes is for what stands between quotes in a script.
func inScriptQuotes(v reflect.Value) string { return scriptEscapes.Replace(textOf(v)) }

// asScript is a value of its own in a script: text in quotes, and the others apart from the words around them.
func asScript(v reflect.Value) string {
	if v.Kind() != reflect.String {
		return " " + textOf(v) + " "
	}
	quoted, err := json.Marshal(v.String()) // which escapes < and > too
	if err != nil {
		panic("BUG: text that is no JSON: " + err.Error())
	}
	return string(quoted)
}
