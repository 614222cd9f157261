// Package sim plays sales in virtual time: real ledger clients and a real settler, the real scripts on an embedded
// Redis, a modelled shop and database, and faults out of one seed.
//
// A seed draws some orders, and what goes wrong within four seconds: requests and replies that are late or lost,
// instances that stop or are killed, with a journal or without, fail-overs that lose the last writes, a Redis that
// starts empty or with old data, clocks of Redis that jump, and a shop that is late, mute, or gives orders back. One
// seed of twelve has faults that last for minutes besides: a Redis that is away, and instances that are cut off from it
// or killed. Then the faults end, time goes on, and an operator opens what stays closed. It promises that then units
// held and sold do not exceed the total, the shop has each serial at most once, no person has more units than the
// limit, ledger, database and shop agree, and final states stand.
//
// The plan of a seed, its faults and its random words are always the same, and most seeds repeat to the last command.
// What is left to chance is the order of a map, of a select, and of go-redis' goroutines that want a connection at one
// instant: TestSeed_Repeats. A failing seed prints its plan and its trace; -calls FILE writes every command.
//
// It finds what a wrong order of messages does, and each bug of planted_test.go. It does not find what sockets,
// processes or a real Redis do: the chaos test plays the built binary.
package sim
