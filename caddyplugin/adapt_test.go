package caddyplugin

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/caddyserver/caddy/v2/caddyconfig"
	_ "github.com/caddyserver/caddy/v2/modules/standard"
	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update", false, "write what the golden files should hold")

const dashes = "----------"

// TestAdapt reads testdata/adapt: a Caddyfile, a dashed line, and the JSON it
// becomes or the error it is refused with. -update writes the second part.
func TestAdapt(t *testing.T) {
	files, err := filepath.Glob("testdata/adapt/*.caddyfiletest")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".caddyfiletest"), func(t *testing.T) {
			golden, err := os.ReadFile(file)
			require.NoError(t, err)
			input, want, _ := strings.Cut(string(golden), dashes)
			got := adapt(strings.TrimSpace(input) + "\n")
			if *update {
				golden := strings.TrimSpace(input) + "\n" + dashes + "\n" + got + "\n"
				require.NoError(t, os.WriteFile(file, []byte(golden), 0o644))
				return
			}
			require.Equal(t, strings.TrimSpace(want), got)
		})
	}
}

// adapt returns what becomes of a Caddyfile, as indented JSON, or the error.
// Warnings are errors here: a golden file should be well formatted.
func adapt(caddyfile string) string {
	config, warnings, err := caddyconfig.GetAdapter("caddyfile").Adapt([]byte(caddyfile), map[string]any{"filename": "Caddyfile"})
	if err != nil {
		return err.Error()
	}
	var indented bytes.Buffer
	if err := json.Indent(&indented, config, "", "\t"); err != nil {
		return err.Error()
	}
	for _, w := range warnings {
		indented.WriteString("\n" + w.String())
	}
	return indented.String()
}
