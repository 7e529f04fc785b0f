package order

import "unicode/utf8"

// ValidProduct says whether id is a product or activity id: 1 to 64 of
// A-Z a-z 0-9 _ and -. Everything else never becomes part of a key.
func ValidProduct(id string) bool {
	if len(id) == 0 || len(id) > MaxProductBytes {
		return false
	}
	for i := range len(id) {
		c := id[i]
		switch {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', c == '_', c == '-':
		default:
			return false
		}
	}
	return true
}

// ValidUser says whether id is a user id: 1 to 128 bytes of UTF-8 without
// control characters (which separate the fields of a message).
func ValidUser(id string) bool {
	if len(id) == 0 || len(id) > MaxUserBytes || !utf8.ValidString(id) {
		return false
	}
	for _, r := range id {
		if r < 0x20 || 0x7f <= r && r <= 0x9f {
			return false
		}
	}
	return true
}

// ValidPayment says whether id is a reference that a payment service may give to
// a payment: 1 to 128 visible ASCII characters.
func ValidPayment(id string) bool {
	if len(id) == 0 || len(id) > MaxPaymentBytes {
		return false
	}
	for i := range len(id) {
		if id[i] <= ' ' || id[i] > '~' {
			return false
		}
	}
	return true
}
