package listener

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/user"
	"strconv"
	"strings"

	"sluice/config"
)

// socketMode lets the owner and the group of a unix socket connect, which is to write.
const socketMode = 0o660

// PermitSockets gives the unix sockets of listeners their group and mode, so that a proxy of another user can connect.
// The group comes first: at no time may another group connect. Errors name the key that is at fault.
func PermitSockets(listeners []net.Listener, c *config.Config) error {
	s := &c.Server
	for _, ln := range listeners {
		path := ln.Addr().String()
		if _, isUnix := ln.(*net.UnixListener); !isUnix || !strings.HasPrefix(path, "/") {
			continue
		}
		if s.SocketGroup != "" {
			gid, err := groupID(s.SocketGroup)
			if err != nil {
				return c.Errorf("server.socket_group", "%v", err)
			}
			err = os.Chown(path, -1, gid)
			if errors.Is(err, fs.ErrPermission) {
				return c.Errorf("server.socket_group", "this process may not give %s to the group %q; make its user a member "+
					"(systemd: SupplementaryGroups=%s)", path, s.SocketGroup, s.SocketGroup)
			}
			if err != nil {
				return c.Errorf("server.socket_group", "%v", err)
			}
		}
		if err := os.Chmod(path, socketMode); err != nil {
			return c.Errorf("server.listen", "%v", err)
		}
	}
	return nil
}

// groupID finds a group by its name or number.
func groupID(group string) (int, error) {
	text := group
	if g, err := user.LookupGroup(group); err == nil {
		text = g.Gid
	}
	gid, err := strconv.Atoi(text)
	if err != nil || gid < 0 {
		return 0, fmt.Errorf("this machine has no group %q; write one of /etc/group", group)
	}
	return gid, nil
}
