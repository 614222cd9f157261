//go:build unix

package demo

import (
	"strings"
	"syscall"
	"testing"
)

func TestCrowdLargerThanTheFileLimitIsToldWhatToDo(t *testing.T) {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil || uint64(limit.Cur) > 1<<40 {
		t.Skip("there is no limit of open files here")
	}
	fits := (int(limit.Cur) - spareDescriptors) / 2
	if err := enoughDescriptors(fits); fits > 0 && err != nil {
		t.Errorf("%d shoppers fit: %v", fits, err)
	}
	if err := enoughDescriptors(fits + 1); err == nil || !strings.Contains(err.Error(), "ulimit -n") {
		t.Errorf("%d shoppers do not fit: %v", fits+1, err)
	}
}
