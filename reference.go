// Package sluice holds what belongs to the whole project and to no part of it: the reference configuration and the
// number of the release.
package sluice

import _ "embed"

// Reference is config.toml: every key with its default and its meaning.
//
//go:embed config.toml
var Reference string

// ReferenceInChinese is the same with Chinese comments: a test holds the two together, line by line.
//
//go:embed config.zh-CN.toml
var ReferenceInChinese string

// Release is the file VERSION: the release that these sources belong to, and a line break.
//
//go:embed VERSION
var Release string
