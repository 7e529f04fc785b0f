package main

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/BurntSushi/toml"
)

// manifest is xcaddy.toml: the fields of xcaddy's Builder that this project
// uses, under the names they have there, and the output of its command line.
type manifest struct {
	CaddyVersion string        `toml:"caddy_version"`
	Output       string        `toml:"output"`
	Plugins      []plugin      `toml:"plugins"`
	Replacements []replacement `toml:"replacements"`
}

type plugin struct {
	// ModulePath is the path of the plugin's package, xcaddy's name for it
	// notwithstanding.
	ModulePath string `toml:"module_path"`
	Version    string `toml:"version"`
}

type replacement struct {
	Old string `toml:"old"`
	New string `toml:"new"`
}

// readManifest refuses keys that nothing would heed.
func readManifest(path string) (manifest, error) {
	var m manifest
	meta, err := toml.DecodeFile(path, &m)
	if err != nil {
		return manifest{}, fmt.Errorf("reading %s: %w", path, err)
	}
	var errs []error
	for _, key := range meta.Undecoded() {
		errs = append(errs, fmt.Errorf("%s: unknown key %s", path, key))
	}
	if m.CaddyVersion == "" {
		errs = append(errs, fmt.Errorf("%s: caddy_version is missing; without it xcaddy builds whatever is newest", path))
	}
	if m.Output == "" {
		errs = append(errs, fmt.Errorf("%s: output is missing", path))
	}
	for i, p := range m.Plugins {
		if p.ModulePath == "" {
			errs = append(errs, fmt.Errorf("%s: plugins[%d]: module_path is missing", path, i))
		}
	}
	for i, r := range m.Replacements {
		if r.Old == "" || r.New == "" {
			errs = append(errs, fmt.Errorf("%s: replacements[%d]: old or new is missing", path, i))
		}
	}
	return m, errors.Join(errs...)
}

// args are the arguments of xcaddy for m.
func (m manifest) args() []string {
	args := []string{"build", m.CaddyVersion}
	for _, p := range m.Plugins {
		with := p.ModulePath
		if p.Version != "" {
			with += "@" + p.Version
		}
		args = append(args, "--with", with)
	}
	for _, r := range m.Replacements {
		args = append(args, "--replace", r.Old+"="+r.New)
	}
	return append(args, "--output", m.Output)
}

// env is what xcaddy needs in its environment: a module replaced by a folder is
// not to be looked for on any network, where it may be unknown, forbidden or
// another one. Without it the go command asks for each of its packages first.
func (m manifest) env() []string {
	var local, never []string
	for _, r := range m.Replacements {
		if strings.HasPrefix(r.New, ".") || filepath.IsAbs(r.New) {
			local = append(local, r.Old)
			never = append(never, r.Old+":off")
		}
	}
	if local == nil {
		return nil
	}
	return []string{"GONOPROXY=" + strings.Join(local, ","), "GOVCS=" + strings.Join(never, ",")}
}

// command is the line that does the same by hand.
func (m manifest) command() string {
	return strings.Join(slices.Concat(m.env(), []string{"go", "tool", "xcaddy"}, m.args()), " ")
}
