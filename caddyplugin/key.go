package caddyplugin

import "net/http"

// maxKey bounds an Idempotency-Key, in bytes.
const maxKey = 128

// idempotencyKey reads the header of that name; empty if there is none, false if
// it is none that can be told apart from others.
func idempotencyKey(r *http.Request) (string, bool) {
	values := r.Header["Idempotency-Key"]
	if len(values) == 0 {
		return "", true
	}
	key := values[0]
	if len(values) > 1 || key == "" || len(key) > maxKey {
		return "", false
	}
	for i := range len(key) {
		if key[i] <= ' ' || key[i] > '~' {
			return "", false
		}
	}
	return key, true
}
