package octets

import "testing"

func TestEqualFold_FoldsASCIIAlone(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want bool
	}{{"Host", "hOST", true}, {"a", "b", false}, {"a", "aa", false}, {"[", "{", false},
		{"\u212a", "k", false}, {"", "", true}} {
		if got := EqualFold(c.a, []byte(c.b)); got != c.want {
			t.Errorf("EqualFold(%q, %q) = %v", c.a, c.b, got)
		}
	}
	folds := EqualFieldName("X_Forwarded_for", "x-forwarded-For") && EqualFieldName("x.y~z", "x-y-z")
	if !folds || EqualFieldName("x1", "x-") {
		t.Error("EqualFieldName folds something else than case and punctuation")
	}
	if !HasPrefixFold("Sluice-Sku", "sluice-") || HasPrefixFold("Slu", "sluice-") {
		t.Error("HasPrefixFold")
	}
}

func TestTrim_CutsSpacesAndTabsAlone(t *testing.T) {
	for in, want := range map[string]string{" a b\t ": "a b", "\n a": "\n a", "": "", "  ": ""} {
		if got := string(Trim([]byte(in))); got != want {
			t.Errorf("Trim(%q) = %q, want %q", in, got, want)
		}
	}
}

func TestIsToken_IsTchar(t *testing.T) {
	for in, want := range map[string]bool{
		"": false, "GET": true, "a b": false, "x~y|z": true, "a:b": false, "\x7f": false, "é": false,
	} {
		if IsToken(in) != want || IsToken([]byte(in)) != want {
			t.Errorf("IsToken(%q) != %v", in, want)
		}
	}
}

func TestUnescape_KeepsWhatIsNoEscape(t *testing.T) {
	for in, want := range map[string]string{
		"a%20b": "a b", "100%": "100%", "%zz%4": "%zz%4", "%2541": "%41", "%e5%95%86": "商",
	} {
		b := []byte(in)
		if got := string(Unescape(b[:0], b)); got != want {
			t.Errorf("Unescape(%q) = %q, want %q", in, got, want)
		}
	}
}

func TestHasToken_ComparesWholeElements(t *testing.T) {
	for list, want := range map[string]bool{
		"close": true, "keep-alive, Close": true, "closed": false, "": false, ",,close ": true,
	} {
		if HasToken([]byte(list), "close") != want {
			t.Errorf("HasToken(%q) != %v", list, want)
		}
	}
}

func TestOctets_AllocateNothing(t *testing.T) {
	list, dst := []byte("keep-alive, close"), make([]byte, 0, 64)
	if n := testing.AllocsPerRun(100, func() {
		if !HasToken(list, "close") || !IsToken(list[:4]) {
			t.Fatal("wrong")
		}
		dst = AppendField(dst[:0], "Connection", list)
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func TestLength_IsReadInOneWayOrNot(t *testing.T) {
	for text, want := range map[string]int64{
		"0": 0, "7": 7, "9223372036854775807": 1<<63 - 1, "9223372036854775808": -1, "99999999999999999999": -1, "": -1,
		"00": -1, "07": -1, "+1": -1, "-1": -1, " 1": -1, "1 ": -1, "0x1": -1, "1,1": -1,
	} {
		if got := Length([]byte(text)); got != want {
			t.Errorf("%q: %d, want %d", text, got, want)
		}
	}
}

func TestHasUnicodeEscape_HasFourDigits(t *testing.T) {
	for text, want := range map[string]bool{
		"%u0072": true, "a%%uFFff": true, "%U4e2d": true, "%u": false, "%up100": false, "%u007": false, "u0072%": false,
	} {
		if got := HasUnicodeEscape([]byte(text)); got != want {
			t.Errorf("%q: %v", text, got)
		}
	}
}
