package lua

// Changes is the channel on which scripts publish the id of a product whose
// units came back or whose activity has become another. Redis may lose such a
// message, and forbids none that it can carry: who waits for one also looks by
// himself from time to time.
const Changes = "seckill:changes"

// Moves is the channel on which scripts publish orders that have been settled or
// released, so that who follows one need not wait for his next look: the product's
// id, then order ids, with spaces between. Redis may lose such a message too.
const Moves = "seckill:moves"
