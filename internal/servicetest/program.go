package servicetest

import (
	"context"
	"fmt"
	"net"
	"os/exec"
	"path/filepath"
	"strconv"
)

const modulePath = "github.com/seckill-edge/seckill"

// BuildTags are the tags that all programs of this module are built with.
const BuildTags = "nobadger,nomysql,nopgx"

// Build compiles a command of this module, given as its folder below the
// module's root ("backend/cmd/seckilld"), into dir and returns the program's
// path. The working directory must be inside the module. Extra arguments go to
// go build (like -race); -tags there replaces BuildTags.
func Build(ctx context.Context, dir, command string, args ...string) (string, error) {
	out := filepath.Join(dir, filepath.Base(command))
	// Nobody debugs it, and most of the linker's time is spent on debug information.
	args = append([]string{"build", "-tags", BuildTags, "-ldflags", "-s -w", "-o", out}, args...)
	cmd := exec.CommandContext(ctx, "go", append(args, modulePath+"/"+command)...)
	if said, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("building %s: %w\n%s", command, err, said)
	}
	return out, nil
}

// Start runs a program of ours as a supervised process, like the servers: it
// ends with the test, its output goes to logPath.
func Start(name string, cmd *exec.Cmd, logPath string) (*Process, error) {
	return startProcess(name, cmd, logPath)
}

// FreeAddr returns 127.0.0.1 with a port that was free a moment ago, and that no
// outgoing connection takes.
func FreeAddr() (string, error) {
	port, err := steadyPort()
	if err != nil {
		return "", err
	}
	return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)), nil
}
