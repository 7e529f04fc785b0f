package order

import (
	"fmt"
	"io"
	"time"
)

// IDLength is the length of an order id in bytes.
const IDLength = 26

// Crockford's base 32 alphabet, lower case: https://www.crockford.com/base32.html
const alphabet = "0123456789abcdefghjkmnpqrstvwxyz"

// NewID makes an order id: 48 bits of now in milliseconds, then 80 bits read
// from random, as 26 characters that sort by time. The layout is that of a ULID
// (https://github.com/ulid/spec), in lower case; rows inserted in the order of
// their ids keep SQL's primary key dense. It fails only if random fails.
func NewID(now time.Time, random io.Reader) (string, error) {
	var raw [16]byte
	ms := uint64(now.UnixMilli())
	for i := range 6 {
		raw[i] = byte(ms >> (40 - 8*i))
	}
	if _, err := io.ReadFull(random, raw[6:]); err != nil {
		return "", fmt.Errorf("reading randomness for an order id: %w", err)
	}
	var out [IDLength]byte
	hi := uint64(raw[0])<<56 | uint64(raw[1])<<48 | uint64(raw[2])<<40 | uint64(raw[3])<<32 |
		uint64(raw[4])<<24 | uint64(raw[5])<<16 | uint64(raw[6])<<8 | uint64(raw[7])
	lo := uint64(raw[8])<<56 | uint64(raw[9])<<48 | uint64(raw[10])<<40 | uint64(raw[11])<<32 |
		uint64(raw[12])<<24 | uint64(raw[13])<<16 | uint64(raw[14])<<8 | uint64(raw[15])
	for i := IDLength - 1; i >= 0; i-- {
		out[i] = alphabet[lo&31]
		lo = lo>>5 | hi<<59
		hi >>= 5
	}
	return string(out[:]), nil
}

// IDTime says when an id was made, to the millisecond; false if id is none.
func IDTime(id string) (time.Time, bool) {
	if !ValidID(id) {
		return time.Time{}, false
	}
	var ms uint64
	for i := range 10 {
		ms = ms<<5 | uint64(value(id[i]))
	}
	return time.UnixMilli(int64(ms)), true
}

// ValidID says whether id could have come from NewID.
func ValidID(id string) bool {
	if len(id) != IDLength || id[0] > '7' {
		return false
	}
	for i := range len(id) {
		if value(id[i]) < 0 {
			return false
		}
	}
	return true
}

func value(c byte) int {
	for i := range len(alphabet) {
		if alphabet[i] == c {
			return i
		}
	}
	return -1
}
