// Package sluice holds what belongs to the whole project and to no part of it: the reference configuration.
package sluice

import _ "embed"

// Reference is config.toml: every key with its default and its meaning.
//
//go:embed config.toml
var Reference string
