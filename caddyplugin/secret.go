package caddyplugin

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/seckill-edge/seckill/internal/secret"
)

// secretOf reads a secret from where a placeholder says: the environment or a
// file, without what stands around it (see secret.Clean). The secret itself is not accepted, since
// everybody can read the config whom Caddy's admin endpoint lets in. Errors never
// show what was given or read.
func secretOf(option, placeholder string) (string, error) {
	if err := checkSecret(option, placeholder); err != nil {
		return "", err
	}
	text, err := resolvePlaceholders(placeholder)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) {
		return "", fmt.Errorf("%s: %w", option, err)
	}
	if err != nil {
		return "", fmt.Errorf("%s: there is nothing at %s; set it before Caddy starts", option, placeholder)
	}
	return secret.Named(option+": what stands at "+placeholder, text)
}

// checkSecret says whether a text is a placeholder that a secret may be read from.
func checkSecret(option, placeholder string) error {
	inner := bare(placeholder)
	if inner == placeholder || strings.ContainsAny(inner, "{}") ||
		!strings.HasPrefix(inner, "env.") && !strings.HasPrefix(inner, "file.") {
		return fmt.Errorf("%s: write where the secret is, not the secret: {env.NAME} or {file./run/secrets/name}", option)
	}
	return nil
}
