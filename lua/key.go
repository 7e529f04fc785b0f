package lua

import (
	"crypto/sha256"
	"encoding/base64"
)

// keyLength is the length of what HashKey makes.
const keyLength = 11

// HashKey makes what Redis keeps of an Idempotency-Key: 64 bits of a hash of
// product, user and key, in 11 characters of base64url. The same key of another
// buyer or for another product is another one; two keys of one buyer meet once in
// 2^64.
func HashKey(product, user, key string) string {
	text := make([]byte, 0, 256)
	text = append(text, product...)
	text = append(text, 0)
	text = append(text, user...)
	text = append(text, 0)
	text = append(text, key...)
	sum := sha256.Sum256(text)
	return base64.RawURLEncoding.EncodeToString(sum[:8])
}

func validKey(key string) bool {
	if len(key) != keyLength {
		return false
	}
	for i := range len(key) {
		switch c := key[i]; {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', c == '_', c == '-':
		default:
			return false
		}
	}
	return true
}
