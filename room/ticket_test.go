package room

import (
	"bytes"
	"testing"
)

func keysOf(t testing.TB, secrets ...string) *Keys {
	t.Helper()
	var list [][]byte
	for _, s := range secrets {
		list = append(list, []byte(s))
	}
	k, err := newKeys(list)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

const (
	oldSecret = "0123456789abcdef-old"
	newSecret = "0123456789abcdef-new"
)

func TestTicket_IsOfOneRoomAndUser(t *testing.T) {
	k := keysOf(t, newSecret)
	p := Place{Number: 123_456_789, Joined: 1_793_000_000, Flags: Early}
	made := k.Append(nil, []byte("double-11"), []byte("u1"), p)
	if len(made) != signedLength {
		t.Fatalf("%d bytes, want %d", len(made), signedLength)
	}
	if got, err := k.Read(made, []byte("double-11"), []byte("u1")); err != nil || got != p {
		t.Errorf("read %+v, %v", got, err)
	}
	for _, other := range [][2]string{{"double-11", "u2"}, {"double-12", "u1"}, {"double-11", ""}, {"double-1", "1u1"}} {
		if _, err := k.Read(made, []byte(other[0]), []byte(other[1])); err == nil {
			t.Errorf("%q is valid for %q", made, other)
		}
	}
	for i := range made {
		wrong := bytes.Clone(made)
		wrong[i] ^= 1
		if _, err := k.Read(wrong, []byte("double-11"), []byte("u1")); err == nil {
			t.Errorf("byte %d may be another", i)
		}
	}
}

func TestTicket_OldKeyIsAcceptedBesideTheNewOne(t *testing.T) {
	before, meanwhile, after := keysOf(t, oldSecret), keysOf(t, newSecret, oldSecret), keysOf(t, newSecret)
	name, user := []byte("r"), []byte("u")
	made := before.Append(nil, name, user, Place{Number: 7, Joined: 1})
	if p, err := meanwhile.Read(made, name, user); err != nil || p.Number != 7 {
		t.Errorf("a ticket by the old key: %+v, %v", p, err)
	}
	if _, err := after.Read(made, name, user); err == nil {
		t.Error("a ticket by a key that is gone is valid")
	}
	if _, err := after.Read(meanwhile.Append(nil, name, user, Place{Number: 8}), name, user); err != nil {
		t.Error("the first key does not sign")
	}
}

func TestTicket_CheckAllocatesNothing(t *testing.T) {
	k := keysOf(t, newSecret, oldSecret)
	name, user := []byte("double-11"), []byte("u1")
	made := k.Append(nil, name, user, Place{Number: 5, Joined: 9})
	wrong := bytes.Repeat([]byte("A"), signedLength)
	if n := testing.AllocsPerRun(200, func() {
		_, _ = k.Read(made, name, user)
		_, _ = k.Read(wrong, name, user)
	}); n != 0 && !raced {
		t.Errorf("%v allocations", n)
	}
}

func FuzzTicket(f *testing.F) {
	k := keysOf(f, newSecret)
	name, user := []byte("r"), []byte("u")
	f.Add(k.Append(nil, name, user, Place{Number: 5, Joined: 9, Flags: Early}))
	f.Add([]byte("AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"))
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, ticket []byte) {
		p, err := k.Read(ticket, name, user)
		if err != nil {
			return
		}
		if again := k.Append(nil, name, user, p); !bytes.Equal(again, ticket) {
			t.Errorf("%q says %+v, whose ticket is %q", ticket, p, again)
		}
	})
}

func BenchmarkTicket_Read(b *testing.B) {
	k := keysOf(b, newSecret)
	name, user := []byte("double-11"), []byte("u1")
	made := k.Append(nil, name, user, Place{Number: 5, Joined: 9})
	b.ReportAllocs()
	for b.Loop() {
		if _, err := k.Read(made, name, user); err != nil {
			b.Fatal(err)
		}
	}
}
