package config

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// listing writes a file of networks and returns the key that names it.
func listing(t *testing.T, text string) (path, key string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "deny.txt")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path, fmt.Sprintf("[limits]\ndeny = [\"10.0.0.0/8\", \"file:%s\"]", path)
}

func TestNetworks_ListsOfNetworksComeFromFilesToo(t *testing.T) {
	path, key := listing(t, "# scrapers\r\n192.0.2.7\n\n 198.51.100.9/24 # not masked\n2001:db8::/32\n::1")
	c, err := Parse("config.toml", []byte(whole(key)), nil)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"10.0.0.0/8", "192.0.2.7/32", "198.51.100.0/24", "2001:db8::/32", "::1/128"}
	got := []string{}
	for _, p := range c.Limits.Denied {
		got = append(got, p.String())
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("networks (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"config.toml", path}, c.Files()); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
}

func TestNetworks_OneWrongLineRejectsTheWholeList(t *testing.T) {
	path, key := listing(t, "192.0.2.7\n192.0.2.256\n")
	_, err := Parse("config.toml", []byte(whole(key)), nil)
	want := "config.toml:2: limits.deny[2]: " + path + ":2: \"192.0.2.256\" is neither a CIDR nor an address; write it " +
		"like \"192.0.2.0/24\""
	if err == nil || err.Error() != want {
		t.Errorf("got %v\nwant %s", err, want)
	}
}

// Lists come out of editors and spreadsheets: a mark before the text is not part of the first network.
func TestNetworks_ByteOrderMarkIsNotPartOfAList(t *testing.T) {
	_, key := listing(t, "\ufeff192.0.2.7\r\n")
	c, err := Parse("config.toml", []byte(whole(key)), nil)
	if err != nil || len(c.Limits.Denied) != 2 || c.Limits.Denied[1].String() != "192.0.2.7/32" {
		t.Errorf("read as %v, %v", c, err)
	}
	_, key = listing(t, "192.0.2.7\n\ufeff192.0.2.8\n")
	if _, err := Parse("config.toml", []byte(whole(key)), nil); err == nil {
		t.Error("a mark in the middle was passed over")
	}
}

func TestNetworks_ListsAreOfBoundedSize(t *testing.T) {
	_, key := listing(t, strings.Repeat("#", 8<<20+1))
	if _, err := Parse("config.toml", []byte(whole(key)), nil); err == nil || !strings.Contains(err.Error(),
		"is larger than 8MiB") {
		t.Errorf("a list beyond the bound: %v", err)
	}
}
