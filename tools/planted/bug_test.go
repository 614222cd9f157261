package main

import (
	"reflect"
	"testing"
)

func TestBug_PatchSaysWhatItBreaksAndWhoMustNotice(t *testing.T) {
	const diff = "\ndiff --git a/x.go b/x.go\n"
	b, err := parse("Bug: a bug\nBreaks: all\nTest: ./x TestOne|TestTwo\nTest: ./y TestThree\n" + diff)
	want := bug{name: "a bug", breaks: "all", suites: []suite{{"./x", []string{"TestOne", "TestTwo"}},
		{"./y", []string{"TestThree"}}}}
	if err != nil || !reflect.DeepEqual(b, want) {
		t.Errorf("%+v, %v", b, err)
	}
	for _, text := range []string{
		"", diff, "Bug: a bug\nBreaks: all\nTest: ./x TestOne\n", "Bug: a bug\nBreaks: all\n" + diff,
		"Bug: a bug\nTest: ./x TestOne\n" + diff, "Bug: a bug\nBreaks: all\nTest: ./x\n" + diff,
		"Bug: a\nBreaks: b\nTests: ./x T\nTest: ./x T\n" + diff,
	} {
		if _, err := parse(text); err == nil {
			t.Errorf("%q is read without an error", text)
		}
	}
}

func TestBug_EachTestIsRunOnceWhereNothingIsWrong(t *testing.T) {
	one, two := suite{"./x", []string{"A", "B"}}, suite{"./x", []string{"B", "C"}}
	got := suites([]bug{{suites: []suite{one, {"./y", []string{"A"}}}}, {suites: []suite{two}}})
	if want := []suite{{"./x", []string{"A", "B", "C"}}, {"./y", []string{"A"}}}; !reflect.DeepEqual(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	if len(one.tests) != 2 || one.tests[1] != "B" {
		t.Errorf("a bug's own suite became %v", one)
	}
}
