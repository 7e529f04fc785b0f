// Package servicetest starts private, real servers for tests, benchmarks and
// fault kits: on free loopback ports, with their data in a folder of the
// caller's, and such that they die with the process that started them. They can
// be killed, stopped, paused and started again on the same port and data.
package servicetest
