// Package browser holds the tests that look at Sluice as people do: headless Chromium before the built binary, a real
// redis-server and a shop.
//
// It promises that the pages, the client script and the dashboard do what their documentation says in a browser,
// without an error in its console and without an unexpected request. It does not know what a person could not see. Each
// scenario is one file of JavaScript, played by playwright-core; the Go beside it builds the stage and, when all have
// left, audits the books. There is nothing to import.
package browser
