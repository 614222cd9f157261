package gateway

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"strings"
	"sync"
	"time"

	"sluice/config"
)

// certificate is a key pair that is read again when its files change, without a restart.
type certificate struct {
	certFile, keyFile string
	log               *slog.Logger

	mu     sync.Mutex
	pair   *tls.Certificate
	texts  [2]string // of the files that pair was read from
	looked time.Time
	fault  string // why they could not be read at the last look; "" = they could
}

// checkEvery is how often, at the most, the files are read. Their times tell nothing: cp -p and rsync -t keep them.
const checkEvery = time.Second

// tlsConfig is TLS 1.2 or later, for HTTP/1.1 alone; nil where none is configured.
func tlsConfig(c *config.TLS, log *slog.Logger) (*tls.Config, error) {
	if c == nil {
		return nil, nil
	}
	k := &certificate{certFile: c.CertFile, keyFile: c.KeyFile, log: log}
	if err := k.read(); err != nil {
		return nil, err
	}
	return &tls.Config{MinVersion: tls.VersionTLS12, NextProtos: []string{"http/1.1"}, GetCertificate: k.current}, nil
}

// current implements tls.Config.GetCertificate. A pair that cannot be read leaves the old one in place.
func (k *certificate) current(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if now := time.Now(); now.Sub(k.looked) >= checkEvery {
		k.looked = now
		old := k.pair
		switch err := k.read(); {
		case err == nil:
			k.fault = ""
			if k.pair != old {
				k.log.Info("certificate reloaded", "file", k.certFile)
			}
		case k.fault != err.Error():
			k.fault = err.Error()
			k.log.Error("certificate not reloaded; the old one stays", "err", err)
		}
	}
	return k.pair, nil
}

// read leaves pair as it is where the files hold what it was read from.
func (k *certificate) read() error {
	texts, err := k.contents()
	if err != nil || k.pair != nil && texts == k.texts {
		return err
	}
	pair, err := tls.X509KeyPair([]byte(texts[0]), []byte(texts[1]))
	if err != nil {
		return fmt.Errorf("read %s and %s: %w; %s", k.certFile, k.keyFile, err, certificateRemedy(err))
	}
	k.pair, k.texts = &pair, texts
	return nil
}

// certificateRemedy is what to do about a pair of files that are there and cannot be used. crypto/tls has no types for
// it.
func certificateRemedy(err error) string {
	switch text := err.Error(); {
	case strings.Contains(text, "does not match"):
		return "write the key that belongs to the first certificate of cert_file"
	case errors.Is(err, fs.ErrPermission):
		return "let the user that runs Sluice read it: chown or chgrp, and chmod 640"
	case strings.Contains(text, "failed to parse private key"):
		return "the key may be encrypted, and Sluice asks for no password: openssl pkey -in KEY -out PLAIN, chmod 600 PLAIN"
	}
	return "cert_file is a chain of certificates in PEM, key_file a private key in PEM, both without a byte order mark"
}

func (k *certificate) contents() (texts [2]string, err error) {
	for i, file := range []string{k.certFile, k.keyFile} {
		info, err := os.Stat(file)
		if err != nil {
			return texts, fmt.Errorf("%w; put the file there, or correct its path", err)
		}
		if !info.Mode().IsRegular() { // every handshake would wait for a pipe
			return texts, fmt.Errorf("%s: not a regular file", file)
		}
		text, err := os.ReadFile(file)
		if err != nil {
			return texts, fmt.Errorf("%w; %s", err, certificateRemedy(err))
		}
		texts[i] = string(text)
	}
	return texts, nil
}
