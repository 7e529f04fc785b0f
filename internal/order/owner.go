package order

// ownerSum is how many of an id's last characters say whom it was made for.
const ownerSum = 4

// OwnID makes an id that says whom it is for, so that any edge can tell a buyer
// of an order that no store has heard of: its last characters become a sum of the
// others, the product and the buyer. 60 random bits each millisecond are left to
// tell ids apart. It is no secret: who makes up an id of his own is told of an
// order that does not exist. id must be NewID's.
func OwnID(id, product, user string) string {
	var out [IDLength]byte
	copy(out[:], id)
	sum := sumOf(id, product, user)
	for i := range ownerSum {
		out[IDLength-1-i] = alphabet[sum&31]
		sum >>= 5
	}
	return string(out[:])
}

// OwnedBy says whether OwnID made this id for this product and buyer. For others
// it is true once in a million.
func OwnedBy(id, product, user string) bool {
	return ValidID(id) && OwnID(id, product, user) == id
}

// sumOf is FNV-1a of the random part, the product and the buyer, with nothing in
// them that could be read as the border between two of them.
func sumOf(id, product, user string) uint64 {
	const offset, prime = 14695981039346656037, 1099511628211
	sum := uint64(offset)
	for _, part := range [...]string{id[:IDLength-ownerSum], product, user} {
		for i := range len(part) {
			sum = (sum ^ uint64(part[i])) * prime
		}
		sum = (sum ^ 0xff) * prime
	}
	return sum ^ sum>>32
}
