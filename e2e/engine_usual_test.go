//go:build !noeventloop

package e2e

const engineTags = "nethttpomithttp2"
