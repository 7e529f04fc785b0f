// How much of their share the buyer has: the units of the orders that this browser
// knows of, as they were told last.

import * as api from "./api.js";
import * as buyer from "./buyer.js";

const holding = ["queued", "created", "paid"];

// note keeps what was told of an order.
export function note(product, order) {
  const known = buyer.orders(product);
  const before = known[order.order_id] || {};
  known[order.order_id] = { status: order.status, final: order.final === true, quantity: order.quantity || before.quantity || 0 };
  buyer.keepOrders(product, known);
}

// taken is the units that the buyer holds.
export const taken = (product) => Object.values(buyer.orders(product))
  .filter((order) => holding.includes(order.status))
  .reduce((units, order) => units + order.quantity, 0);

// refresh asks for the orders that may have changed since, but for the one that the
// page follows: one that expires gives its units back to the share.
export async function refresh(product, followed) {
  for (const [id, order] of Object.entries(buyer.orders(product))) {
    if (id === followed || order.final || !holding.includes(order.status)) continue;
    const answer = await api.order(product, id);
    if (answer.httpStatus === 200) note(product, answer);
    if (answer.httpStatus === 404) note(product, { order_id: id, status: "unknown" });
  }
}
