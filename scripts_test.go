package seckill

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"
)

// The fuzz script says of each target whether it was fuzzed at all. The go of this
// test says what go test says.
func TestFuzzScript(t *testing.T) {
	makefile, err := os.ReadFile("Makefile")
	require.NoError(t, err)
	named := regexp.MustCompile(`ONLY=(Fuzz\w+)`).FindSubmatch(makefile)
	require.NotNil(t, named)
	const known = "fuzz: elapsed: 0s, gathering baseline coverage: 0/275 completed\n"
	for name, tc := range map[string]struct {
		time, target string
		goSays       string
		goExits      string
		status       int
		says         []string
	}{
		"fuzzed": {"5s", "FuzzCheck", known + "fuzz: elapsed: 0s, gathering baseline coverage: 275/275 completed, now fuzzing with 2 workers\n" +
			"fuzz: elapsed: 5s, execs: 1275 (255/sec), new interesting: 0 (total: 275)\nok", "0", 0, []string{"FuzzCheck 1000 new inputs", "targets=1 time=5s each, no crash\n"}},
		"too short a time": {"5s", "FuzzCheck", known + "fuzz: elapsed: 5s, gathering baseline coverage: 30/275 completed\nok", "0", 75, []string{
			"FuzzCheck NOT fuzzed: 5s was over before its 275 known inputs were run", "1 NOT fuzzed: give them more time",
		}},
		"known inputs only": {"5s", "FuzzCheck", known + "fuzz: elapsed: 5s, execs: 275 (55/sec), new interesting: 0 (total: 275)\nok", "0", 75, []string{"FuzzCheck NOT fuzzed"}},
		"a crash":           {"5s", "FuzzCheck", known + "--- FAIL: FuzzCheck", "1", 1, []string{"FuzzCheck FAILED"}},
		"no such target":    {"5s", "FuzzNothing", "", "0", 2, []string{`no fuzz target is called "FuzzNothing"`, "FuzzCheck FuzzIDs", " " + string(named[1]) + " "}},
		"no time":           {"x", "", "", "0", 2, []string{`FUZZTIME "x" is no time; use one as 30s`}},
		"no unit":           {"5", "", "", "0", 2, []string{`FUZZTIME "5" is no time`}},
		"for ever":          {"0s", "", "", "0", 2, []string{`FUZZTIME "0s" is no time`}},
	} {
		t.Run(name, func(t *testing.T) {
			folder := t.TempDir()
			require.NoError(t, os.WriteFile(filepath.Join(folder, "go"), []byte("#!/bin/sh\necho \"$GO_SAYS\"\nexit $GO_EXITS\n"), 0o700)) //nolint:gosec // it is run
			cmd := exec.CommandContext(t.Context(), "sh", "internal/fuzz.sh", tc.time, tc.target)
			cmd.Env = append(os.Environ(), "PATH="+folder+":"+os.Getenv("PATH"), "GO_SAYS="+tc.goSays, "GO_EXITS="+tc.goExits)
			said, err := cmd.CombinedOutput()
			var exit *exec.ExitError
			if err != nil && !errors.As(err, &exit) {
				require.NoError(t, err)
			}
			require.Equal(t, tc.status, cmd.ProcessState.ExitCode(), string(said))
			for _, words := range tc.says {
				require.Contains(t, string(said), words)
			}
		})
	}
}
