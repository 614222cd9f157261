// Package failpoint holds the places at which a build with the tag failpoints kills itself, and a wall clock that such
// a build can set wrong. Tests of crashes use it. In every other build it changes nothing and costs nothing.
package failpoint
