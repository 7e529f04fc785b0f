// Package lua is the stock in Redis: one script a file, each run by one typed Go
// function, together with the key names and outcome codes. A script checks
// everything first and writes last, because scripts do not roll back; it takes
// every key through KEYS and answers with integers and strings, never with an
// error of its own.
//
// available + frozen + sold = total at every instant. Reserve moves units from
// available to frozen, Settle from frozen to sold, Release from frozen back to
// available. A repeat of any call has no second effect.
package lua
