package e2e

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

func groupOf(info os.FileInfo) string { return strconv.Itoa(int(info.Sys().(*syscall.Stat_t).Gid)) }

// systemd hands its sockets over from descriptor 3 on, and names the process in LISTEN_PID (sd_listen_fds(3)).
func TestSocketActivation_ServesOnTheSocketsOfTheServiceManager(t *testing.T) {
	t.Parallel()
	shop := open(t, func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, "ordered") })
	tcp, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	socket := filepath.Join(t.TempDir(), "gate.sock")
	unix, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(socket, 0o606); err != nil {
		t.Fatal(err)
	}
	var files []*os.File
	for _, ln := range []net.Listener{tcp, unix} {
		f, err := ln.(interface{ File() (*os.File, error) }).File()
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, f)
	}
	path := file(t, "server.shutdown_delay = \"0s\"\n"+listeners+shop.setting()+
		"\n[[route]]\nname = \"all\"\nmatch = \"/\"\ngate = \"limit\"\n")
	command := exec.Command("sh", "-c", `LISTEN_PID=$$ exec "$0" "$@"`, binary, "run", "--config", path)
	command.Env, command.ExtraFiles = []string{"LISTEN_FDS=2"}, files
	g := start(t, path, command)
	tcp.Close() // the gate has its own copies
	unix.(*net.UnixListener).SetUnlinkOnClose(false)
	unix.Close()
	for _, address := range []string{"tcp " + tcp.Addr().String(), "unix " + socket} {
		network, at, _ := strings.Cut(address, " ")
		conn, err := net.Dial(network, at)
		if err != nil {
			t.Errorf("%s: %v", address, err)
			continue
		}
		fmt.Fprint(conn, "GET / HTTP/1.1\r\nHost: shop\r\nConnection: close\r\n\r\n")
		said, err := io.ReadAll(conn)
		if err != nil || !strings.HasPrefix(string(said), "HTTP/1.1 200 ") || !strings.HasSuffix(string(said), "ordered") {
			t.Errorf("%s: %q, %v", address, said, err)
		}
		conn.Close()
	}
	g.logs(t, "listening on sockets of the service manager; server.listen is not used")
	if info, err := os.Stat(socket); err != nil || info.Mode().Perm() != 0o606 {
		t.Errorf("the service manager's socket is changed: %v, %v", info, err)
	}
}

func TestUnixSocket_GroupThatDoesNotExistIsNamed(t *testing.T) {
	t.Parallel()
	path := file(t, fmt.Sprintf("upstream.targets = [%q]\n[server]\nlisten = [\"unix:%s/s\"]\n"+
		"socket_group = \"no-such-group\"\n[[route]]\nname = \"all\"\nmatch = \"/\"\ngate = \"limit\"\n", nowhere(t),
		t.TempDir()))
	s := run(t, "", "run", "--config", path)
	if s.code != 1 {
		t.Errorf("exit code %d", s.code)
	}
	wants(t, s.complaint, `config.toml:4: server.socket_group: this machine has no group "no-such-group"`)
}
