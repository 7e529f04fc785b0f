// The three calls of the edge. Each answers {httpStatus, retryAfter, …fields of
// the body} or throws when no answer came.

import * as buyer from "./buyer.js";

const patience = 10000; // milliseconds for one call

async function call(method, path, body) {
  const headers = { "X-User-Id": buyer.id() };
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

export const buy = (product, quantity) =>
  call("POST", base(product), quantity > 1 ? { quantity } : undefined);

export const order = (product, orderId) =>
  call("GET", `${base(product)}/orders/${encodeURIComponent(orderId)}`);

// events is the order's state as it changes. An EventSource carries no headers, so
// the buyer goes along in a cookie, which only this demonstration's edge believes.
export function events(product, orderId) {
  document.cookie = `seckill_buyer=${encodeURIComponent(buyer.id())}; path=/seckill; SameSite=Strict`;
  return new EventSource(`${base(product)}/orders/${encodeURIComponent(orderId)}/events`);
}
