package settle

import (
	"strings"
	"testing"
)

func TestRetry_NamesAWayOutForAnEntryThatCannotBeRead(t *testing.T) {
	_, err := Retry(t.Context(), nil, Conflict{ID: 1, SKU: "1001", Kind: "entry", Entry: `"r:x" "bad"`})
	if err == nil || !strings.Contains(err.Error(), "sluice-settle rebuild \"1001\"") {
		t.Errorf("%v: want a command that exists", err)
	}
}
