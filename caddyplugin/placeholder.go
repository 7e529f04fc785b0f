package caddyplugin

import (
	"bytes"
	"fmt"
	"os"
	"regexp"
	"strings"

	"github.com/caddyserver/caddy/v2"
)

const filePlaceholder = "file."

var files = regexp.MustCompile(`\{file\.[^{}]*\}`)

// resolvePlaceholders puts what placeholders stand for in their places. All must
// stand for something. Errors never show what any stands for.
func resolvePlaceholders(text string) (string, error) {
	resolved, err := caddy.NewReplacer().ReplaceOrErr(text, true, true)
	if err == nil {
		return resolved, nil
	}
	// Caddy takes a file that cannot be read for an empty one.
	for _, file := range files.FindAllString(text, -1) {
		if _, cause := os.ReadFile(fileOf(file)); cause != nil {
			return "", fmt.Errorf("%s: %w", file, cause)
		}
	}
	return "", err
}

// fileOf is the path in a placeholder {file.PATH}; empty if it is another one.
func fileOf(placeholder string) string {
	path, ok := strings.CutPrefix(bare(placeholder), filePlaceholder)
	if !ok {
		return ""
	}
	return path
}

// emptyFile says that a text is a placeholder for a file that is there and holds
// nothing.
func emptyFile(text string) bool {
	path := fileOf(text)
	if path == "" {
		return false
	}
	content, err := os.ReadFile(path)
	return err == nil && len(bytes.TrimSpace(content)) == 0
}
