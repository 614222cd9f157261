package stockgate

import (
	"fmt"
	"strings"
	"testing"

	"sluice/internal/redistest"
	"sluice/stockgate/layout"
)

// scripted returns a Redis that reads by a script of the test's.
func scripted(t *testing.T, server *redistest.Server, text string) *Redis {
	t.Helper()
	return dial(t, server, layout.Options{Type: layout.Script, Key: "$sku", Script: text})
}

func TestScript_IsTaughtOnceAndAgainAfterAFlush(t *testing.T) {
	server := redistest.Start(t)
	s := scripted(t, server, "return tonumber(redis.call('GET', KEYS[1]))")
	setUp(t, server, "SET x 5")
	for want := int64(5); want > 0; want-- {
		if r := readOne(t, s, "x"); r != reading(want) {
			t.Fatalf("read %+v, want %d left", r, want)
		}
		setUp(t, server, "DECR x")
		if want == 3 {
			setUp(t, server, "SCRIPT FLUSH")
		}
	}
	if n := server.Calls("script|load"); n != 2 {
		t.Errorf("the script was loaded %d times, want 2", n)
	}
	if s.metrics.up.Load() != true {
		t.Error("an unknown script counts as a lost Redis")
	}
}

func TestScript_UnknownScriptDoesNotOpenTheBreaker(t *testing.T) {
	server := redistest.Start(t)
	s := scripted(t, server, "return 5")
	for range 50 { // more than the breaker bears in a second
		setUp(t, server, "SCRIPT FLUSH")
		if r := readOne(t, s, "x"); r != reading(5) {
			t.Fatalf("read %+v", r)
		}
	}
}

func TestScript_WhatAScriptReturnsIsUnderstoodOrAFault(t *testing.T) {
	server := redistest.Start(t)
	paused := reading(5)
	paused.OnSale = false
	for text, want := range map[string]layout.Reading{
		"return 5":                  reading(5),
		"return -3":                 reading(-3),
		"return '5'":                reading(5),
		"return '9007199254740993'": reading(1<<53 + 1),
		"return {5, 1}":             reading(5),
		"return {'5', 0}":           paused,
		"return nil":                {OnSale: true},
		"return false":              {OnSale: true},
		"return {false, 1}":         {OnSale: true},
		"return 5.9":                reading(5), // Redis itself cuts it
		"return tonumber(ARGV[1] == 'x' and #ARGV == 1 and 7)":  reading(7),
		"return #KEYS == 1 and KEYS[1] == 'x' and 8":            reading(8),
		"return redis.call('GET', 'none')":                      {OnSale: true},
		"redis.setresp(3) return redis.call('HGETALL', 'none')": {},
		"return 'many'":                        {},
		"return ''":                            {},
		"return {}":                            {},
		"return {5}":                           {},
		"return {5, 2}":                        {},
		"return {5, '1'}":                      {},
		"return {5, 1, 1}":                     {},
		"return {{5}, 1}":                      {},
		"return {double = 5}":                  {},
		"return redis.status_reply('OK')":      {},
		"return redis.error_reply('SOLD out')": {},
		"return nothing + 1":                   {},
		"return redis.call('LLEN', KEYS[1] .. 'string')":               {},
		"return redis.call('SET', KEYS[1], 0) and 5":                   {},
		"return redis.call('NOSUCH', KEYS[1])":                         {},
		"return this is no Lua":                                        {},
		"redis.pcall('DEL', KEYS[1]) return redis.call('GET', 'kept')": reading(6),
	} {
		s := scripted(t, server, text)
		setUp(t, server, "SET xstring 1", "SET kept 6")
		r := readOne(t, s, "x")
		if fault := want == (layout.Reading{}); fault != (r.Fault != nil) || !fault && r != want {
			t.Errorf("%s: read %+v, want %+v", text, r, want)
		}
		if err := s.Ping(t.Context()); err != nil || !s.metrics.up.Load() {
			t.Errorf("%s: Redis counts as lost: %v", text, err)
		}
	}
	if n := server.Client.Exists(t.Context(), "x").Val(); n != 0 {
		t.Error("a script wrote")
	}
}

func TestScript_GetsAllKeysThatAreConfigured(t *testing.T) {
	server := redistest.Start(t)
	s := dial(t, server, layout.Options{Type: layout.Script, Key: "{$sku}:s", StatusKey: "{$sku}:on",
		StatusOpen:  []string{"1"},
		SoldOutFlag: "{$sku}:over", UsersKey: "{$sku}:uids", Prefix: "p:",
		Script: "return table.concat(KEYS, ' ') == 'p:{x}:s p:{x}:on p:{x}:over p:{x}:uids' and 3"})
	setUp(t, server, "SET p:{x}:on 1")
	if r := readOne(t, s, "x"); r != reading(3) {
		t.Fatalf("read %+v", r)
	}
	setUp(t, server, "SET p:{x}:over 1")
	if r := readOne(t, s, "x"); r.Free != 0 {
		t.Fatalf("behind the flag: %+v", r)
	}
}

func TestScript_AndStatusMustBothSayOnSale(t *testing.T) {
	server := redistest.Start(t)
	setUp(t, server, "SET on:x 1", "SET on:y 0", "SET on:z 1")
	s := dial(t, server, layout.Options{Type: layout.Script, Key: "$sku", StatusKey: "on:$sku", StatusOpen: []string{"1"},
		Script: "return {5, ARGV[1] == 'z' and 0 or 1}"})
	for sku, want := range map[string]bool{"x": true, "y": false, "z": false} {
		if r := readOne(t, s, sku); r.OnSale != want || r.Left != 5 {
			t.Errorf("%s: read %+v, want on sale: %v", sku, r, want)
		}
	}
}

// A Redis before 7 knows no EVALSHA_RO.
func TestScript_OlderRedisRunsTheScriptToo(t *testing.T) {
	server := redistest.Start(t, "--rename-command", "EVALSHA_RO", "")
	s := scripted(t, server, "return 5")
	for range 3 {
		if r := readOne(t, s, "x"); r != reading(5) {
			t.Fatalf("read %+v", r)
		}
	}
	if n := server.Calls("evalsha"); n != 4 {
		t.Errorf("%d calls of EVALSHA, want 3 and the one before the script was loaded", n)
	}
}

func TestScript_UserWithoutTheRightToAScriptIsToldSo(t *testing.T) {
	for right, want := range map[string]string{
		"-evalsha_ro": "NOPERM", "-evalsha_ro -evalsha": "NOPERM", "-script|load": "load script_file: NOPERM",
	} {
		server := redistest.Start(t)
		setUp(t, server, "SCRIPT FLUSH", "ACL SETUSER default "+right)
		s := scripted(t, server, "return 5")
		if r := readOne(t, s, "x"); r.Fault == nil || !strings.Contains(fmt.Sprint(r.Fault), want) {
			t.Errorf("%s: read %+v, want a fault that names %s", right, r, want)
		}
		if !s.metrics.up.Load() {
			t.Errorf("%s: Redis counts as lost", right)
		}
	}
}

func TestScript_StockBehindAScriptIsNotWritten(t *testing.T) {
	server := redistest.Start(t)
	s := scripted(t, server, "return 5")
	err := s.Set(t.Context(), "x", 5)
	_, add := s.Add(t.Context(), "x", 5)
	for _, err := range []error{err, add} {
		if err == nil || !strings.Contains(err.Error(), "only the shop") {
			t.Errorf("%v, want a rejection in words", err)
		}
	}
	if n := server.Client.Exists(t.Context(), "x").Val(); n != 0 {
		t.Error("something was written")
	}
}
