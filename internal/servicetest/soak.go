package servicetest

import "os"

// Soak says that tests are to try every case on every set of servers, however long it
// takes: `make soak`. Otherwise a matrix of many cases runs whole on the real servers,
// and on the embedded ones in a few cases that differ from each other.
func Soak() bool { return os.Getenv("SECKILL_SOAK") == "1" }
