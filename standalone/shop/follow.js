// An order's way from "queued" to its fate, shown as it goes.

import * as api from "./api.js";
import * as buyer from "./buyer.js";
import * as clock from "./clock.js";
import { fates, late, reasons } from "./words.js";
import { $, say } from "./page.js";

let turn = 0; // rises with each order followed; an older one stops showing

// forget shows no order.
export function forget() {
  turn++;
  steps(["", "", ""]);
  $("order").dataset.status = "none";
  $("orderfacts").hidden = true;
  $("ordernone").hidden = false;
}

// follow asks for an order's fate until it is final and shows it as it goes.
// fresh is the answer that promised it, if that has just come; note is said in
// place of the order's state.
export async function follow(product, orderId, { fresh, note } = {}) {
  const mine = ++turn;
  buyer.remember(product, orderId);
  if (fresh) show(fresh, note);
  for (;;) {
    let wait = 1;
    try {
      const answer = await api.order(product, orderId);
      if (mine !== turn) return;
      if (answer.httpStatus === 200) {
        show(answer, note);
        if (answer.status !== "queued") return;
      } else if (answer.httpStatus === 404) {
        show({ status: "unknown", order_id: orderId }, note);
        return;
      }
      wait = answer.retryAfter || 1;
      if (clock.now() > Date.parse(fresh?.resolve_by)) say(late);
    } catch {
      // No answer says nothing about the order: ask again.
    }
    await new Promise((resolve) => setTimeout(resolve, wait * 1000));
    if (mine !== turn) return;
  }
}

function show(order, note) {
  const fate = fates[order.status] || { text: order.status, steps: ["done", "", ""], tone: "" };
  steps(fate.steps);
  $("orderid").textContent = order.order_id;
  $("orderstatus").textContent = order.status;
  $("orderquantity").textContent = order.quantity || "";
  $("order").dataset.status = order.status;
  $("orderfacts").hidden = false;
  $("ordernone").hidden = true;
  say(note || (order.status === "rejected" && reasons[order.reason]) || fate.text, note ? "bad" : fate.tone);
}

function steps(looks) {
  looks.forEach((look, i) => { $(`step${i + 1}`).dataset.step = look; });
}
