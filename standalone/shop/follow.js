// An order's way from "queued" to its fate, shown as it goes.

import * as api from "./api.js";
import * as buyer from "./buyer.js";
import * as clock from "./clock.js";
import * as share from "./share.js";
import { fates, late, looks, payments, reasons } from "./words.js";
import { $, say } from "./page.js";

const silence = 5000; // milliseconds in which a stream must have said something

let turn = 0; // rises with each order followed; an older one stops showing
let hangUp = () => {}; // ends the stream that is open
let payBy = NaN; // when the order shown must be paid, in the shop's milliseconds
let shownId = ""; // the order that is followed
let staged = false; // the sale has a payment stage

function next() {
  hangUp();
  return ++turn;
}

// followed is the order that the page shows; empty for none.
export const followed = () => shownId;

// expectPayment says whether the sale's orders have to be paid.
export function expectPayment(on) {
  staged = on;
  if (!shownId) steps(["", "", ""]);
}

// forget shows no order.
export function forget() {
  next();
  shownId = "";
  steps(["", "", ""]);
  payBy = NaN;
  tick();
  $("order").dataset.status = "none";
  $("orderfacts").hidden = true;
  $("ordernone").hidden = false;
}

// follow shows an order as it goes, until its state is final: as the edge tells it,
// and by asking where it cannot tell. fresh is the answer that promised it, if that
// has just come; note is said before the order's state, until that changes.
export async function follow(product, orderId, { fresh, note } = {}) {
  const mine = next();
  buyer.remember(product, orderId);
  shownId = orderId;
  let shown = "";
  const draw = (order) => {
    share.note(product, order);
    if (shown && order.status !== shown) note = "";
    shown = order.status;
    show(order, note);
  };
  if (fresh) draw(fresh);
  const overdue = setTimeout(() => mine === turn && say(late), Math.max(0, Date.parse(fresh?.resolve_by) - clock.now()) || 2 ** 31 - 1);
  const tell = (order) => {
    if (order.status !== "queued") clearTimeout(overdue);
    draw(order);
  };
  if (!(await listen(product, orderId, tell)) && mine === turn) await poll(product, orderId, mine, tell);
  clearTimeout(overdue);
}

// listen shows what the edge pushes. It is over with true when the state is final
// or another order is followed, with false when there is no stream to be had.
function listen(product, orderId, tell) {
  if (!window.EventSource) return Promise.resolve(false);
  return new Promise((resolve) => {
    const source = api.events(product, orderId);
    const end = (done) => {
      clearTimeout(quiet);
      source.close();
      hangUp = () => {};
      resolve(done);
    };
    const quiet = setTimeout(() => end(false), silence);
    hangUp = () => end(true);
    source.addEventListener("status", (event) => {
      clearTimeout(quiet);
      const order = JSON.parse(event.data);
      tell(order);
      if (order.final) end(true);
    });
    // A stream that breaks is opened again by the browser; a refused one is not.
    source.onerror = () => { if (source.readyState === EventSource.CLOSED) end(false); };
  });
}

async function poll(product, orderId, mine, tell) {
  for (;;) {
    let wait = 1;
    try {
      const answer = await api.order(product, orderId);
      if (mine !== turn) return;
      if (answer.httpStatus === 200) {
        tell(answer);
        if (answer.final) return;
      } else if (answer.httpStatus === 404) {
        tell({ status: "unknown", order_id: orderId });
        return;
      }
      wait = answer.retryAfter || 1;
    } catch {
      // No answer says nothing about the order: ask again.
    }
    await new Promise((resolve) => setTimeout(resolve, wait * 1000));
    if (mine !== turn) return;
  }
}

function show(order, note) {
  const unpaid = order.status === "created" && order.final === false;
  payBy = unpaid ? Date.parse(order.pay_by) : NaN;
  const fate = fates[unpaid ? "unpaid" : order.status] || { name: order.status, text: "", steps: ["done", "", ""], tone: "" };
  steps(fate.steps);
  $("orderid").textContent = order.order_id;
  $("orderstatus").textContent = fate.name;
  $("orderquantity").textContent = order.quantity || "";
  $("order").dataset.status = order.status;
  $("orderfacts").hidden = false;
  $("ordernone").hidden = true;
  tick();
  const text = (order.status === "rejected" && reasons[order.reason]) || fate.text;
  say(note ? `${note} ${text}` : text, fate.tone);
}

// tick counts down to the end of the time to pay, while there is one, and offers to pay
// where this page can.
export function tick() {
  const waits = !Number.isNaN(payBy);
  const left = payBy - clock.now();
  $("payrow").hidden = !waits;
  $("pay").hidden = !(left > 0 && api.canPay());
  $("paywhere").hidden = !(left > 0 && !api.canPay());
  if (!waits) return;
  const { days, hours, minutes, seconds } = clock.split(left);
  const span = (days === "0" ? "" : `${days} d `) + (days === "0" && hours === "00" ? "" : `${hours}:`) + `${minutes}:${seconds}`;
  put("payleft", left > 0 ? span : "the time is up");
  put("payuntil", clock.timeOfDay(payBy));
}

// pay pays for the order shown.
export async function pay() {
  const order = shownId;
  if ($("pay").getAttribute("aria-disabled") === "true") return;
  $("pay").setAttribute("aria-disabled", "true");
  say(payments.sending);
  try {
    const answer = await api.pay(order);
    if (order === shownId) say(payments[answer.outcome] || answer.detail || payments.unknown, answer.outcome === "applied" ? "good" : "bad");
  } catch {
    if (order === shownId) say(payments.unknown, "bad");
  }
  $("pay").setAttribute("aria-disabled", "false");
}

// steps draws how far the order is; who cannot see it hears it.
function steps(states) {
  $("step4").hidden = !staged && states.length < 4;
  for (let i = 0; i < 4; i++) {
    const look = states[i] || "";
    const step = $(`step${i + 1}`);
    step.dataset.step = look;
    if (look === "now") step.setAttribute("aria-current", "step"); else step.removeAttribute("aria-current");
    put(`step${i + 1}is`, `: ${looks[look]}`);
  }
}

function put(id, text) {
  if ($(id).textContent !== text) $(id).textContent = text;
}
