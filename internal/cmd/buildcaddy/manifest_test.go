package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const root = "../../../"

// TestOurManifest keeps xcaddy.toml in step with go.mod and with the folders it
// names.
func TestOurManifest(t *testing.T) {
	m, err := readManifest(root + "xcaddy.toml")
	require.NoError(t, err)

	out, err := exec.Command("go", "list", "-m", "-f", "{{.Version}}", "github.com/caddyserver/caddy/v2").Output()
	require.NoError(t, err)
	require.Equal(t, strings.TrimSpace(string(out)), m.CaddyVersion, "caddy_version in xcaddy.toml, and Caddy's version in go.mod")

	module, err := exec.Command("go", "list", "-m").Output()
	require.NoError(t, err)
	ours := strings.TrimSpace(string(module))
	for _, p := range m.Plugins {
		if folder, ok := strings.CutPrefix(p.ModulePath, ours); ok {
			require.DirExists(t, filepath.Join(root, folder))
		}
	}
	require.Equal(t, []replacement{{Old: ours, New: "."}}, m.Replacements)
	require.FileExists(t, root+"go.mod")
	require.Equal(t, "GONOPROXY="+ours+" GOVCS="+ours+":off go tool xcaddy build "+m.CaddyVersion+" --with "+ours+"/caddyplugin --replace "+ours+"=. --output bin/caddy", m.command())
}

func TestManifestErrors(t *testing.T) {
	const good = "caddy_version = \"v2.0.0\"\noutput = \"bin/x\"\n"
	for name, tc := range map[string]struct{ toml, want string }{
		"not TOML":       {"caddy_version", "reading"},
		"no version":     {"output = \"x\"", "caddy_version is missing"},
		"no output":      {"caddy_version = \"v2.0.0\"", "output is missing"},
		"unknown key":    {good + "outputs = 1", "unknown key outputs"},
		"unknown nested": {good + "[[plugins]]\nmodule_path = \"a\"\nbranch = \"b\"", "unknown key plugins.branch"},
		"no module path": {good + "[[plugins]]\nversion = \"v1\"", "plugins[0]: module_path is missing"},
		"half replaced":  {good + "[[replacements]]\nold = \"a\"", "replacements[0]: old or new is missing"},
	} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "xcaddy.toml")
			require.NoError(t, os.WriteFile(file, []byte(tc.toml), 0o644))
			_, err := readManifest(file)
			require.ErrorContains(t, err, tc.want)
		})
	}
	_, err := readManifest(filepath.Join(t.TempDir(), "none.toml"))
	require.ErrorIs(t, err, os.ErrNotExist)
}

func TestEnv(t *testing.T) {
	m := manifest{Replacements: []replacement{{"a/b", "."}, {"c", "d v1.0.0"}, {"e", "/src/e"}}}
	require.Equal(t, []string{"GONOPROXY=a/b,e", "GOVCS=a/b:off,e:off"}, m.env())
	require.Empty(t, manifest{Replacements: []replacement{{"c", "d v1.0.0"}}}.env())
}

func TestArgs(t *testing.T) {
	m := manifest{
		CaddyVersion: "v2.11.9", Output: "x",
		Plugins:      []plugin{{ModulePath: "a/b", Version: "v1.2.3"}, {ModulePath: "c"}},
		Replacements: []replacement{{Old: "c", New: "../c"}},
	}
	require.Equal(t, []string{"build", "v2.11.9", "--with", "a/b@v1.2.3", "--with", "c", "--replace", "c=../c", "--output", "x"}, m.args())
}
