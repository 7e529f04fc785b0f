package version

import (
	"runtime/debug"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestOf(t *testing.T) {
	ours := func(version string) debug.Module { return debug.Module{Path: module, Version: version} }
	other := debug.Module{Path: "caddy", Version: "(devel)"}
	checkout := []debug.BuildSetting{{Key: "vcs.revision", Value: "4d4ed2d"}, {Key: "vcs.time", Value: "2026-11-30T01:33:11Z"}, {Key: "vcs.modified", Value: "true"}}
	released, replaced := ours("v1.2.0"), ours("v0.0.0-1")
	replaced.Replace = &debug.Module{Path: "."}
	fork := ours("v1.2.0")
	fork.Replace = &debug.Module{Path: "example.com/fork", Version: "v1.2.1"}
	for _, tc := range []struct {
		want string
		info debug.BuildInfo
	}{
		{"(devel) go1.26", debug.BuildInfo{Main: ours("(devel)")}},
		{"v1.2.0 go1.26", debug.BuildInfo{Main: released}},
		{"v1 4d4ed2d of 2026-11-30T01:33:11Z modified go1.26", debug.BuildInfo{Main: ours("v1"), Settings: checkout}},
		{"v1.2.0 go1.26", debug.BuildInfo{Main: other, Deps: []*debug.Module{{Path: "x"}, &released}}},
		{"(devel) go1.26", debug.BuildInfo{Main: other, Deps: []*debug.Module{&replaced}, Settings: checkout}},
		{"v1.2.1 go1.26", debug.BuildInfo{Main: other, Deps: []*debug.Module{&fork}}},
		{"unknown go1.26", debug.BuildInfo{Main: other}},
	} {
		tc.info.GoVersion = "go1.26"
		require.Equal(t, tc.want, of(&tc.info))
	}
	require.Contains(t, String(), "go1.")
}
