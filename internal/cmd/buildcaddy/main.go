// Command buildcaddy builds Caddy with the plugin as xcaddy.toml says. It prints
// the one-line command that does the same, and runs it:
//
//	go run ./internal/cmd/buildcaddy            build
//	go run ./internal/cmd/buildcaddy -print     only print the command
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
)

func main() {
	file := flag.String("file", "xcaddy.toml", "the manifest; its folder is where xcaddy runs")
	onlyPrint := flag.Bool("print", false, "print the command and do not run it")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, *file, *onlyPrint)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "buildcaddy:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, file string, onlyPrint bool) error {
	m, err := readManifest(file)
	if err != nil {
		return err
	}
	fmt.Println(m.command())
	if onlyPrint {
		return nil
	}
	dir := filepath.Dir(file)
	if err := os.MkdirAll(filepath.Join(dir, filepath.Dir(m.Output)), 0o755); err != nil {
		return fmt.Errorf("making the output folder: %w", err)
	}
	cmd := exec.CommandContext(ctx, "go", append([]string{"tool", "xcaddy"}, m.args()...)...)
	cmd.Env = append(os.Environ(), m.env()...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = dir, os.Stdout, os.Stderr
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("xcaddy: %w", err)
	}
	return nil
}
