// Package e2e holds the tests of the whole: the built binary between real sockets, with a real redis-server and a
// shop that records what reaches it.
//
// It promises that what the documentation says of a running gate was tried on one. It does not look inside: a
// test knows what a shopper, a shop or an operator can know, and nothing else. There is nothing to import.
package e2e
