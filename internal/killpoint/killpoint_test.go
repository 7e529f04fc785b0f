//go:build killpoints

package killpoint

import (
	"os"
	"os/exec"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestMain plays the victim when it is started as one.
func TestMain(m *testing.M) {
	if os.Getenv("KILLPOINT_VICTIM") != "" {
		for range 3 {
			Here("other")
			Here("place")
		}
		os.Exit(7)
	}
	os.Exit(m.Run())
}

func TestTheProcessEndsAtTheChosenPlace(t *testing.T) {
	for chosen, dies := range map[string]bool{
		"": false, "place": true, "place:1": true, "place:3": true, "place:4": false, "elsewhere": false,
	} {
		t.Run(chosen, func(t *testing.T) {
			cmd := exec.Command(os.Args[0])
			cmd.Env = append(os.Environ(), "KILLPOINT_VICTIM=1", Variable+"="+chosen)
			err := cmd.Run()
			var exit *exec.ExitError
			require.ErrorAs(t, err, &exit)
			status := exit.Sys().(syscall.WaitStatus)
			if dies {
				require.Equal(t, syscall.SIGKILL, status.Signal())
			} else {
				require.Equal(t, 7, status.ExitStatus())
			}
		})
	}
}
