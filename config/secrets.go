package config

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// readSecrets reads the *_file keys that hold a value, and finds those that are read later. A relative path starts from
// the configuration's folder, so that it means the same wherever sluice is started.
func (c *Config) readSecrets(r *report, folder string) {
	if t := c.Server.TLS; t != nil {
		t.CertFile, t.KeyFile = resolvePath(folder, t.CertFile), resolvePath(folder, t.KeyFile)
	}
	c.Upstream.TLS.read(r, folder)
	c.Stock.Redis.Password = Secret(r.Secret("stock.redis.password_file", folder, c.Stock.Redis.PasswordFile))
	c.Stock.Redis.PasswordAt = resolvePath(folder, c.Stock.Redis.PasswordFile)
	c.Stock.Reserve.Secret = Secret(r.LongSecret("stock.reserve.secret_file", folder, c.Stock.Reserve.SecretFile))
	c.Stock.Layout.readScript(r, folder)
	c.Admin.Token = Secret(r.LongSecret("admin.token_file", folder, c.Admin.TokenFile))
	c.Admin.readLesser(r, folder)
	c.Settle.read(r, folder)
}

// SecretFile is a file that holds a secret, and the key that names it.
type SecretFile struct{ Key, Path string }

// SecretFiles are the files that hold passwords, tokens and keys, by their keys. Paths are as they are opened.
func (c *Config) SecretFiles() (files []SecretFile) {
	add := func(key, path string) {
		if path != "" {
			files = append(files, SecretFile{key, resolvePath(filepath.Dir(c.file), path)})
		}
	}
	if t := c.Server.TLS; t != nil {
		add("server.tls.key_file", t.KeyFile)
	}
	add("stock.redis.password_file", c.Stock.Redis.PasswordFile)
	add("stock.reserve.secret_file", c.Stock.Reserve.SecretFile)
	add("settle.password_file", c.Settle.PasswordFile)
	for i, h := range c.Settle.Homes {
		add(Element("settle.home", i)+".password_file", h.PasswordFile)
	}
	add("settle.webhook.key_file", c.Settle.Webhook.KeyFile)
	add("settle.jobs.key_file", c.Settle.Jobs.KeyFile)
	add("admin.token_file", c.Admin.TokenFile)
	add("admin.viewer_token_file", c.Admin.ViewerTokenFile)
	add("admin.consumer_token_file", c.Admin.ConsumerTokenFile)
	if c.Auth.JWTAlgorithm == "HS256" { // other algorithms have a public key here
		add("auth.jwt_key_file", c.Auth.JWTKeyFile)
	}
	add("auth.cookie_key_file", c.Auth.CookieKeyFile)
	add("auth.order_token_key_file", c.Auth.OrderTokenKeyFile)
	add("auth.room_key_file", c.Auth.RoomKeyFile)
	return files
}

// WritableByAll are the files of the configuration that every user of this machine may write.
func (c *Config) WritableByAll() (files []string) {
	all := c.Files()
	for _, f := range c.SecretFiles() {
		all = append(all, f.Path)
	}
	for _, path := range all {
		if info, err := os.Stat(path); err == nil && info.Mode().Perm()&0o002 != 0 && !slices.Contains(files, path) {
			files = append(files, path)
		}
	}
	return files
}

// Files are those whose content is part of the configuration, its own included; a folder stands for what is in it.
func (c *Config) Files() []string {
	files := []string{c.file}
	for _, list := range [][]string{c.Limits.Bypass, c.Limits.Deny} {
		for _, text := range list {
			if path, isFile := strings.CutPrefix(text, "file:"); isFile {
				files = append(files, path)
			}
		}
	}
	files = append(files, c.Auth.KeyFiles...)
	if t := c.Server.TLS; t != nil {
		files = append(files, t.CertFile, t.KeyFile)
	}
	for _, path := range []string{c.Admin.TokenFile, c.Admin.ViewerTokenFile, c.Admin.ConsumerTokenFile} {
		if path != "" {
			files = append(files, resolvePath(filepath.Dir(c.file), path))
		}
	}
	if path := c.Upstream.TLS.CAPath; path != "" {
		files = append(files, path)
	}
	if dir := c.Responses.PagesDir; dir != "" {
		files = append(files, dir)
	}
	return files
}
