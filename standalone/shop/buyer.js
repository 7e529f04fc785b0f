// Who buys: a random id in this browser, for demonstrations. A real shop names
// its buyers by a login that the edge checks.

const key = "seckill.buyer";
const memory = {}; // where the browser keeps nothing for us

function read(name) {
  if (name in memory) return memory[name];
  try { return localStorage.getItem(name); } catch { return null; }
}

function write(name, value) {
  try {
    localStorage.setItem(name, value);
    delete memory[name];
  } catch { memory[name] = value; }
}

function erase(name) {
  delete memory[name];
  try { localStorage.removeItem(name); } catch { /* it keeps nothing */ }
}

function random(bytes) {
  return Array.from(crypto.getRandomValues(new Uint8Array(bytes)), (b) => b.toString(16).padStart(2, "0")).join("");
}

// id names the buyer, always the same until renew.
export function id() {
  let known = read(key);
  if (!known) {
    known = "buyer-" + random(5);
    write(key, known);
  }
  return known;
}

// renew makes somebody else of us.
export function renew() {
  write(key, "buyer-" + random(5));
}

const orderKey = (product) => `seckill.order.${product}.${id()}`;
const ordersKey = (product) => `seckill.orders.${product}.${id()}`;

function object(text) {
  try { return JSON.parse(text); } catch { return null; }
}

// lastOrder is the buyer's newest order of a product; remember keeps it over a
// reload.
export const lastOrder = (product) => read(orderKey(product));
export const remember = (product, orderId) => write(orderKey(product), orderId);

// orders are all of them that this browser knows of: {status, final, quantity} by id.
export const orders = (product) => object(read(ordersKey(product))) || {};
export const keepOrders = (product, known) => write(ordersKey(product), JSON.stringify(known));

const purchaseKey = (product) => `seckill.purchase.${product}.${id()}`;

// openPurchase is the purchase whose answer is not known, also after a reload:
// {key, quantity, doubt}. key is its Idempotency-Key; doubt says that a click may have
// bought. Null if there is none.
export const openPurchase = (product) => object(read(purchaseKey(product)));

// intend begins a purchase, or takes up the open one: the same key with another
// quantity would be another purchase, so one in doubt keeps its quantity.
export function intend(product, quantity) {
  const open = openPurchase(product);
  if (open && (open.doubt || open.quantity === quantity)) return open;
  const purchase = { key: random(16), quantity, doubt: false };
  keep(product, purchase);
  return purchase;
}

// keep notes how an open purchase stands; decided forgets it, its answer is known.
export const keep = (product, purchase) => write(purchaseKey(product), JSON.stringify(purchase));
export const decided = (product) => erase(purchaseKey(product));
