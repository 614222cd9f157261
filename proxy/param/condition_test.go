package param

import (
	"strings"
	"testing"
)

func TestCondition_ComparesTextOrWholeNumbers(t *testing.T) {
	for _, c := range []struct {
		condition string
		met, not  []string
	}{
		{"$jwt_ok=true", []string{"true"}, []string{"false", "True", "true "}},
		{"$jwt_ok != true", []string{"false", "1"}, []string{"true"}},
		{"$jwt_level>=2", []string{"2", "3", "10", "002"},
			[]string{"1", "-3", "2.5", "two", "2 ", "9999999999999999", "-", "+2"}},
		{"$jwt_level<=-2", []string{"-2", "-10"}, []string{"-1", "2"}},
		{"$jwt_level > 2", []string{"3"}, []string{"2", "x"}},
		{"$jwt_level<2", []string{"1", "-999999999999999"}, []string{"2", "", "0x1"}},
		{"$(jwt_level)=a", []string{"a"}, []string{"b"}},
	} {
		compiled, err := CompileCondition(c.condition, nil)
		if err != nil {
			t.Errorf("%s: %v", c.condition, err)
			continue
		}
		for _, value := range c.met {
			if !compiled.MetBy([]byte(value)) {
				t.Errorf("%q does not meet %s", value, c.condition)
			}
		}
		for _, value := range c.not {
			if compiled.MetBy([]byte(value)) {
				t.Errorf("%q meets %s", value, c.condition)
			}
		}
	}
}

func TestCompileCondition_NamesWhatIsWrongAndTheWayOut(t *testing.T) {
	for condition, want := range map[string]string{
		"":                   `"" compares nothing; write it like "$jwt_level>=2"`,
		"$jwt_level":         `"$jwt_level" compares nothing; write it like "$jwt_level>=2"`,
		"jwt_level>=2":       `"jwt_level" is the same for every request: write "$jwt_level"`,
		"sku=1001":           `"sku" is the same for every request: write "$path_sku"`,
		"level>=2":           `"level" is the same for every request: write a variable, like "$jwt_level"`,
		">=2":                `">=2" has no variable before >=; write it like "$jwt_level>=2"`,
		"$jwt_level==2":      `"$jwt_level==2" has an unknown operator; write one of = != >= <= > <`,
		"$jwt_level=>2":      `"$jwt_level=>2" has an unknown operator; write one of = != >= <= > <`,
		"$jwt_level!2":       `"$jwt_level!2" has an unknown operator; write one of = != >= <= > <`,
		"$jwt_level>=":       `"$jwt_level>=" has no constant behind >=; write it like "$jwt_level>=2"`,
		"$jwt_level>=$arg_n": `"$jwt_level>=$arg_n" has a variable behind >=; write a constant`,
		"$jwt_level>=two":    `>= compares whole numbers of at most 15 digits, and "two" is none; write one, or use = or !=`,
		"$jwt_level>2.5":     `> compares whole numbers of at most 15 digits, and "2.5" is none; write one, or use = or !=`,
		"$jwt_a$jwt_b=1":     `"$jwt_a$jwt_b" is more than one variable; write a condition for each`,
		"$jwt_a-$jwt_b=1":    `"$jwt_a-$jwt_b" is more than one variable; write a condition for each`,
		"$path_size=1":       "$path_size: the pattern has no {size}: write {size} into match, or another variable",
	} {
		_, err := CompileCondition(condition, []string{"sku"})
		if err == nil || err.Error() != want {
			t.Errorf("%s: %v, want %s", condition, err, want)
		}
	}
	if _, err := CompileCondition("$nothing=1", nil); err == nil || !strings.Contains(err.Error(), "unknown variable") {
		t.Errorf("an unknown variable: %v", err)
	}
}
