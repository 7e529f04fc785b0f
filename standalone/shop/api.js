// The calls of the edge. Each answers {httpStatus, retryAfter, …fields of
// the body} or throws when no answer came.

import * as buyer from "./buyer.js";

const noTicket = -13; // the code of a purchase that needs a ticket, or another one
const tickets = new Map(); // not yet used, by product and buyer
const patience = 10000; // milliseconds for one call

async function call(method, path, body, more) {
  const headers = { "X-User-Id": buyer.id(), ...more };
  if (body) headers["Content-Type"] = "application/json";
  const response = await fetch(path, {
    method, headers, body: body && JSON.stringify(body),
    cache: "no-store", signal: AbortSignal.timeout(patience),
  });
  const fields = await response.json().catch(() => ({}));
  return {
    ...fields,
    httpStatus: response.status,
    retryAfter: Number(response.headers.get("Retry-After")) || 0,
    age: Number(response.headers.get("Age")) || 0,
  };
}

const base = (product) => `/seckill/${encodeURIComponent(product)}`;

export const activity = (product) => call("GET", base(product));

// deciding are the refusals by which a purchase has come to nothing: the edge gives
// them after it has looked for an order of the purchase's key.
const deciding = [-1, -3, -4, -5, -6, -7, -9];

// buy sends the buyer's purchase under its Idempotency-Key, the same until the answer
// is known: a click whose answer was lost and the click after it are one purchase.
export async function buy(product, quantity) {
  const purchase = buyer.intend(product, quantity);
  const before = purchase.doubt;
  // Noted first: this page may be gone before the answer comes.
  buyer.keep(product, { ...purchase, doubt: true });
  const answer = await send(product, purchase);
  if (answer.httpStatus === 202 || deciding.includes(answer.code)) {
    buyer.decided(product);
  } else if (!before && answer.code < 0) {
    buyer.keep(product, purchase); // refused, and never in doubt
  }
  return answer;
}

// send asks for a ticket first where the edge wants one. A ticket that was refused or
// whose purchase got no answer is kept: it buys one order, however often it is sent.
async function send(product, { key, quantity }) {
  const body = quantity > 1 ? { quantity } : undefined;
  const mine = `${product} ${buyer.id()}`;
  const post = () => call("POST", base(product), body,
    { "Idempotency-Key": key, ...(tickets.has(mine) && { "Seckill-Ticket": tickets.get(mine) }) });
  let answer = await post();
  if (answer.code === noTicket) {
    const given = await call("POST", `${base(product)}/ticket`);
    if (given.httpStatus !== 200) return given;
    tickets.set(mine, given.ticket);
    answer = await post();
  }
  if (answer.httpStatus === 202) tickets.delete(mine);
  return answer;
}

export const order = (product, orderId) =>
  call("GET", `${base(product)}/orders/${encodeURIComponent(orderId)}`);

// events is the order's state as it changes. An EventSource carries no headers, so
// the buyer goes along in a cookie, which only this demonstration's edge believes.
export function events(product, orderId) {
  document.cookie = `seckill_buyer=${encodeURIComponent(buyer.id())}; path=/seckill; SameSite=Strict`;
  return new EventSource(`${base(product)}/orders/${encodeURIComponent(orderId)}/events`);
}

// canPay says whether this page can pay: the demonstration can, whose program writes
// so into the page. A real shop sends its buyers to its payment service.
export const canPay = () => document.querySelector("meta[name=payment]").content === "demo";

// pay pays an order of the demonstration; sent again, it is the same payment.
export const pay = (orderId) =>
  call("POST", `/demo/pay/${encodeURIComponent(orderId)}`, { payment_id: `demo-${orderId}` });
