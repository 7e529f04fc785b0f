package servicetest

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
)

// servers are what tests start, and the Debian packages that bring them.
var servers = []struct{ program, debian string }{
	{"redis-server", "redis-server"},
	{"rabbitmq-server", "rabbitmq-server"},
	{"mariadbd", "mariadb-server"},
	{"mariadb-install-db", "mariadb-server"},
}

// Missing names the Debian packages of the servers that are not installed. With
// them, every test of this project can run.
func Missing() []string {
	var packages []string
	for _, s := range servers {
		if _, err := program(s.program); err != nil && !slices.Contains(packages, s.debian) {
			packages = append(packages, s.debian)
		}
	}
	return packages
}

// outsidePath is where Debian keeps servers that are not on an ordinary user's
// PATH. RabbitMQ's come first: what /usr/sbin has under their names changes user
// and ignores our environment.
var outsidePath = []string{"/usr/lib/rabbitmq/bin", "/usr/sbin", "/usr/local/sbin"}

// program finds the executable called name.
func program(name string) (string, error) {
	for _, dir := range outsidePath {
		path := filepath.Join(dir, name)
		if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() && info.Mode().Perm()&0o111 != 0 {
			return path, nil
		}
	}
	path, err := exec.LookPath(name)
	if err != nil {
		return "", fmt.Errorf("%s is not installed; apt-get install %s or run make test: %w", name, debianPackage(name), err)
	}
	return path, nil
}

func debianPackage(name string) string {
	for _, s := range servers {
		if s.program == name {
			return s.debian
		}
	}
	return name
}
