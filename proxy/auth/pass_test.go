package auth

import (
	"bytes"
	"testing"
)

func newTestPasses(t testing.TB, keys ...string) Passes {
	t.Helper()
	var all [][]byte
	for _, k := range keys {
		all = append(all, []byte(k))
	}
	p, err := NewPasses(all)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestPasses_EndOfOneUserInOneRoom(t *testing.T) {
	const ends = 1_800_000_030_000
	next := "another key of 32 bytes or more!"
	pass := newTestPasses(t, secret).Append(nil, []byte("flash\n9"), []byte("7"), ends)
	for _, c := range []struct {
		keys       []string
		room, user string
		want       int64
	}{
		{[]string{secret}, "flash\n9", "7", ends},
		{[]string{next, secret}, "flash\n9", "7", ends},
		{[]string{next}, "flash\n9", "7", 0},
		{[]string{secret}, "flash\n9", "8", 0},
		{[]string{secret}, "flash\n", "97", 0},
		{[]string{secret}, "flash\n8", "7", 0},
	} {
		if got := newTestPasses(t, c.keys...).Ends(pass, []byte(c.room), []byte(c.user)); got != c.want {
			t.Errorf("%+v: %d", c, got)
		}
	}
	if _, err := NewPasses(nil); err == nil {
		t.Error("no key is enough")
	}
}

func TestPasses_ChangedPassIsInvalid(t *testing.T) {
	p, room, user := newTestPasses(t, secret), []byte("flash\n9"), []byte("7")
	pass := p.Append(nil, room, user, 1_800_000_030_000)
	for i := range pass {
		for _, c := range []byte("AZaz09-_=.\x00") {
			changed := bytes.Clone(pass)
			if changed[i] = c; !bytes.Equal(changed, pass) && p.Ends(changed, room, user) != 0 {
				t.Errorf("%q is valid, and so is %q", pass, changed)
			}
		}
	}
	for _, other := range [][]byte{nil, []byte("."), pass[1:], append([]byte("0"), pass...), append([]byte("-"), pass...),
		append(bytes.Clone(pass), 'A'), append(bytes.Clone(pass), '='), bytes.Repeat([]byte("9"), 40)} {
		if p.Ends(other, room, user) != 0 {
			t.Errorf("%q is valid", other)
		}
	}
}

func TestPasses_DoNotAllocate(t *testing.T) {
	if raceEnabled {
		t.Skip("pools drop values under the race detector")
	}
	p, room, user := newTestPasses(t, secret), []byte("flash\n9"), []byte("7")
	pass := p.Append(nil, room, user, 1_800_000_030_000)
	if n := testing.AllocsPerRun(100, func() { p.Ends(pass, room, user) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
