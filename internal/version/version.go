// Package version says which version of this module runs, as the build has noted it.
package version

import (
	"runtime/debug"
	"strings"
)

const module = "github.com/seckill-edge/seckill"

// String is the version of this module in the running program, and that of Go, such
// as
//
//	v1.2.0 go1.26.2
//	v1.2.1-0.20261130013311-4d4ed2d9cafe 4d4ed2d9cafe… of 2026-11-30T01:33:11Z go1.26.2
//
// the latter with "modified" if the checkout was. A program that was built with
// -buildvcs=false, or with the module replaced by a folder, does not know better than
// "(devel)".
func String() string {
	info, known := debug.ReadBuildInfo()
	if !known {
		return "unknown"
	}
	return of(info)
}

func of(info *debug.BuildInfo) string {
	if info.Main.Path != module {
		return from(info.Deps) + " " + info.GoVersion
	}
	said := map[string]string{}
	for _, s := range info.Settings {
		said[s.Key] = s.Value
	}
	parts := []string{info.Main.Version}
	if revision := said["vcs.revision"]; revision != "" {
		parts = append(parts, revision, "of", said["vcs.time"])
	}
	if said["vcs.modified"] == "true" {
		parts = append(parts, "modified")
	}
	return strings.Join(append(parts, info.GoVersion), " ")
}

// from is the version as another program requires it, such as Caddy.
func from(modules []*debug.Module) string {
	for _, m := range modules {
		switch {
		case m.Path != module:
		case m.Replace != nil && m.Replace.Version == "":
			return "(devel)"
		case m.Replace != nil:
			return m.Replace.Version
		default:
			return m.Version
		}
	}
	return "unknown"
}
