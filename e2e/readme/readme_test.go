// Package readme runs the commands of README.md as a newcomer would, so that the
// page cannot lie. Every line of its sh blocks is run here, or by CI before.
package readme

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/seckill-edge/seckill/internal/servicetest"
)

// byCI are run by continuous integration itself.
var byCI = map[string]bool{"make test": true}

// commands are the lines of the sh blocks, without trailing comments.
func commands(t *testing.T) []string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, "README.md"))
	require.NoError(t, err)
	var lines []string
	inside := false
	for line := range strings.SplitSeq(string(text), "\n") {
		switch {
		case line == "```sh":
			inside = true
		case line == "```":
			inside = false
		case inside && strings.TrimSpace(line) != "":
			command, _, _ := strings.Cut(line, "   #")
			lines = append(lines, strings.TrimSpace(command))
		}
	}
	require.NotEmpty(t, lines)
	return lines
}

const root = "../.."

// reader is somebody who types what the page says.
type reader struct {
	t    *testing.T
	env  []string
	dir  string
	said map[string]string // command → what it printed
}

// shell runs one line in the root of the repository.
func (r *reader) shell(line string) {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(r.t.Context(), servicetest.Scaled(20*time.Minute))
	defer cancel()
	cmd := exec.CommandContext(ctx, "sh", "-c", line)
	cmd.Dir, cmd.Env = root, r.env
	out, err := cmd.CombinedOutput()
	require.NoError(r.t, err, "%s\n%s", line, out)
	r.said[line] = string(out)
}

// background starts a line that goes on until the test ends, and waits until url
// answers.
func (r *reader) background(line, url string) {
	r.t.Helper()
	cmd := exec.Command("sh", "-c", "exec "+line)
	cmd.Dir, cmd.Env = root, r.env
	p, err := servicetest.Start(line, cmd, filepath.Join(r.dir, fmt.Sprintf("%d.log", len(r.said))))
	require.NoError(r.t, err)
	r.t.Cleanup(func() { require.NoError(r.t, p.Stop(), line) })
	r.said[line] = ""
	servicetest.Eventually(r.t, func() bool {
		select {
		case <-p.Done():
			require.NoError(r.t, p.Wait())
			require.FailNow(r.t, "ended by itself", line)
		default:
		}
		resp, err := http.Get(url)
		if err != nil {
			return false
		}
		return resp.Body.Close() == nil
	}, "%s: no answer from %s", line, url)
}

func TestEveryCommand(t *testing.T) {
	lines := commands(t)
	r := &reader{t: t, dir: t.TempDir(), said: map[string]string{}, env: os.Environ()}
	if testing.Short() {
		// What needs nothing installed: the newcomer's first five minutes.
		lines = lines[:0:0]
		for _, line := range commands(t) {
			if line == "go run ./standalone" || strings.HasPrefix(line, "go run ./bench/rush") {
				lines = append(lines, line)
			}
		}
		require.Len(t, lines, 2)
	} else {
		r.production(t)
	}
	for _, line := range lines {
		switch {
		case byCI[line], strings.HasPrefix(line, "export "):
			// The page's addresses are examples; ours are in the environment.
		case line == "go run ./standalone":
			r.background(line, "http://127.0.0.1:8480/")
		case strings.HasPrefix(line, "bin/seckilld serve"):
			r.background(line, "http://127.0.0.1:9680/healthz")
		case strings.HasPrefix(line, "bin/caddy run"):
			r.background(line, "http://127.0.0.1:18443/seckill/1001")
		default:
			r.shell(line)
		}
	}
	if testing.Short() {
		return
	}
	for _, module := range []string{"admin.api.seckill", "http.handlers.seckill", "http.handlers.seckill_limit", "seckill"} {
		require.Contains(t, r.said["bin/caddy list-modules --skip-standard"], module+"\n")
	}
	require.Contains(t, r.said["bin/seckilld activity audit 1001"], "drift")
}

// production sets the environment of "Run in production" to private servers.
func (r *reader) production(t *testing.T) {
	redis, mariadb := servicetest.RedisForTest(t), servicetest.MariaDBForTest(t)
	rabbit := servicetest.RabbitMQForTest(t)
	require.NoError(t, mariadb.CreateDatabase(t.Context(), "seckill"))
	r.env = append(r.env,
		"SECKILL_REDIS_URL="+redis.URL(), "SECKILL_RABBITMQ_URL="+rabbit.URL(),
		"SECKILL_DATABASE_URL=mysql://root@"+mariadb.Addr()+"/seckill",
		"SECKILL_SITE=http://127.0.0.1:18443", "SECKILL_BIND=127.0.0.1", "SECKILL_ADMIN=off", "SECKILL_SHOP_ROOT="+r.dir)
}

// The line by hand in the README is the one that make caddy runs.
func TestXcaddyLine(t *testing.T) {
	cmd := exec.CommandContext(t.Context(), "go", "run", "./internal/cmd/buildcaddy", "-print")
	cmd.Dir = root
	out, err := cmd.Output()
	require.NoError(t, err)
	require.Contains(t, commands(t), strings.TrimSpace(string(out)))
}
