// Package proxy takes one request at a time from the listener to an answer.
package proxy
