// Who buys: a random id in this browser, for demonstrations. A real shop names
// its buyers by a login that the edge checks.

const key = "seckill.buyer";
const memory = {}; // where the browser keeps nothing for us

function read(name) {
  try { return localStorage.getItem(name); } catch { return memory[name] || null; }
}

function write(name, value) {
  try { localStorage.setItem(name, value); } catch { memory[name] = value; }
}

function random() {
  const bytes = crypto.getRandomValues(new Uint8Array(5));
  return "buyer-" + Array.from(bytes, (b) => b.toString(16).padStart(2, "0")).join("");
}

// id names the buyer, always the same until renew.
export function id() {
  let known = read(key);
  if (!known) {
    known = random();
    write(key, known);
  }
  return known;
}

// renew makes somebody else of us.
export function renew() {
  write(key, random());
}

const orderKey = (product) => `seckill.order.${product}.${id()}`;

// lastOrder is the buyer's newest order of a product; remember keeps it over a
// reload.
export const lastOrder = (product) => read(orderKey(product));
export const remember = (product, orderId) => write(orderKey(product), orderId);
