// Package e2e tests the whole product as its users have it: real processes, real
// servers. All of it needs servers, so -short runs none of it.
package e2e

import (
	"flag"
	"fmt"
	"os"
	"testing"
)

func TestMain(m *testing.M) {
	flag.Parse()
	if testing.Short() {
		fmt.Println("e2e needs real servers; run without -short")
		os.Exit(0)
	}
	os.Exit(m.Run())
}
