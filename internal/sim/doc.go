// Package sim plays sales in virtual time: real ledger clients and a real settler, the real scripts on an embedded Redis,
// a modelled shop and database, and faults out of one seed.
//
// It promises that a seed gives the same plan of orders and faults each time, and that a failing seed prints the plan.
// After each schedule the faults end, time goes on, and then: units held and sold never exceed the total, the shop has
// each serial at most once, ledger, database and shop agree, and final states stand.
//
// It finds what a wrong order of messages does. It does not find what sockets, processes or a real Redis do: the chaos
// test plays the built binary.
package sim
