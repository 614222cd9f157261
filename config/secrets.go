package config

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
)

// maxSecret bounds a file that holds one password or token.
const maxSecret = 4 << 10

// readSecrets reads the *_file keys that hold a value, and finds those that are read later. A relative path starts from
// the configuration's folder, so that it means the same wherever sluice is started.
func (c *Config) readSecrets(r *report, folder string) {
	if t := c.Server.TLS; t != nil {
		t.CertFile, t.KeyFile = from(folder, t.CertFile), from(folder, t.KeyFile)
	}
	c.Upstream.TLS.read(r, folder)
	c.Stock.Redis.Password = r.secret("stock.redis.password_file", folder, c.Stock.Redis.PasswordFile)
	c.Stock.Redis.PasswordAt = from(folder, c.Stock.Redis.PasswordFile)
	c.Stock.Reserve.Secret = r.longSecret("stock.reserve.secret_file", folder, c.Stock.Reserve.SecretFile)
	c.Stock.Layout.readScript(r, folder)
	c.Stock.Script.read(r, folder)
	c.Admin.Token = r.longSecret("admin.token_file", folder, c.Admin.TokenFile)
	c.Admin.readViewer(r, folder)
	c.Settle.read(r, folder)
}

// SecretFile is a file that holds a secret, and the key that names it.
type SecretFile struct{ Key, Path string }

// SecretFiles are the files that hold passwords, tokens and keys, by their keys. Paths are as they are opened.
func (c *Config) SecretFiles() (files []SecretFile) {
	add := func(key, path string) {
		if path != "" {
			files = append(files, SecretFile{key, from(filepath.Dir(c.file), path)})
		}
	}
	if t := c.Server.TLS; t != nil {
		add("server.tls.key_file", t.KeyFile)
	}
	add("stock.redis.password_file", c.Stock.Redis.PasswordFile)
	add("stock.reserve.secret_file", c.Stock.Reserve.SecretFile)
	add("settle.password_file", c.Settle.PasswordFile)
	add("settle.webhook.key_file", c.Settle.Webhook.KeyFile)
	add("admin.token_file", c.Admin.TokenFile)
	add("admin.viewer_token_file", c.Admin.ViewerTokenFile)
	if c.Auth.JWTAlgorithm == "HS256" { // other algorithms have a public key here
		add("auth.jwt_key_file", c.Auth.JWTKeyFile)
	}
	add("auth.cookie_key_file", c.Auth.CookieKeyFile)
	add("auth.order_token_key_file", c.Auth.OrderTokenKeyFile)
	add("auth.room_key_file", c.Auth.RoomKeyFile)
	return files
}

// longSecret is a secret that cannot be found by trying.
func (r *report) longSecret(key, folder, path string) Secret {
	faults := len(r.problems)
	value := r.secret(key, folder, path)
	if value != "" && len(value) < 16 && len(r.problems) == faults {
		r.fail(key, "%s holds fewer than 16 bytes; write a longer secret into it, such as that of: openssl rand -hex 32", path)
	}
	return value
}

// secret reads one line; the end of the line is not part of it.
func (r *report) secret(key, folder, path string) Secret {
	if path == "" {
		return ""
	}
	path = from(folder, path)
	text, err := readUpTo(path, maxSecret)
	value := strings.TrimRight(string(text), "\r\n")
	switch {
	case err != nil:
		r.fail(key, "open %s: %s; write the path of a file that sluice may read", path, cause(err))
	case value == "":
		r.fail(key, "%s is empty; write the value into it", path)
	case len(text) > maxSecret:
		r.fail(key, "%s is larger than 4KiB; write the value alone into it", path)
	case strings.ContainsAny(value, "\r\n\x00"):
		r.fail(key, "%s holds more than one line; write the value alone into it", path)
	}
	return Secret(value)
}

// from is where a path leads that starts in folder.
func from(folder, path string) string {
	if path == "" || filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(folder, path)
}

// errNoFile is the error of a pipe or a device: it would be waited for without end, at each reload.
var errNoFile = errors.New("not a regular file")

// readUpTo reads at most so many bytes and one more, which tells that there are more.
func readUpTo(path string, most int64) ([]byte, error) {
	info, err := os.Stat(path)
	if err == nil && !info.Mode().IsRegular() && !info.IsDir() {
		err = errNoFile
	}
	if err != nil {
		return nil, err
	}
	return readSome(path, most)
}

// readSome is readUpTo of whatever it is.
func readSome(path string, most int64) ([]byte, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	return io.ReadAll(io.LimitReader(file, most+1))
}
