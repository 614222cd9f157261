package arch

import (
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// An operator who gives Sluice's user the rights that the page lists has given it every command of the scripts.
func TestDocs_RightsHaveEveryCommandOfTheScripts(t *testing.T) {
	page := read(t, filepath.Join(manual, "redis.md"))
	_, rights, ok := strings.Cut(page, "ACL SETUSER")
	reserve, _, ok2 := strings.Cut(rights, "Without `+info`")
	_, room, ok3 := strings.Cut(rights, "Waiting rooms need")
	room, _, ok4 := strings.Cut(room, "room:*`")
	if !ok || !ok2 || !ok3 || !ok4 {
		t.Fatal("docs/redis.md does not list the rights where this test looks")
	}
	call := regexp.MustCompile(`redis\.p?call\('(\w+)'`)
	for dir, listed := range map[string]string{"stockgate/ledger/lua": reserve, "room/lua": reserve + room} {
		scripts, err := filepath.Glob(filepath.Join(root, dir, "*.lua"))
		if err != nil || len(scripts) == 0 {
			t.Fatalf("no scripts in %s: %v", dir, err)
		}
		has := map[string]bool{}
		for _, word := range regexp.MustCompile(`\+([a-z]+)`).FindAllStringSubmatch(listed, -1) {
			has[word[1]] = true
		}
		for _, path := range scripts {
			for _, found := range call.FindAllStringSubmatch(read(t, path), -1) {
				if command := strings.ToLower(found[1]); !has[command] {
					t.Errorf("%s calls %s, which docs/redis.md does not list for it", path, found[1])
				}
			}
		}
	}
}
