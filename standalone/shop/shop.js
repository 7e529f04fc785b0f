// The sale's page: it shows where the activity stands, counts down by the
// shop's clock, and buys.

import * as api from "./api.js";
import * as buyer from "./buyer.js";
import * as clock from "./clock.js";
import { expectPayment, follow, followed, forget, pay, tick } from "./follow.js";
import { $, say } from "./page.js";
import * as share from "./share.js";
import { offlineClick, refusal, share as shareWords, states, trying } from "./words.js";

const product = new URLSearchParams(location.search).get("product") || "1001";

let sale = null; // the activity as the edge told it last
let reached = true; // the edge answered last time
let busy = false; // a click is on its way
let again = 0; // the shop's time before which another click makes no sense
let refusedWith = ""; // what the last click was refused with, as long as that may be so
let buyable = false; // a click made sense when the page was drawn last
let tries = 0; // how often a click was sent again by itself; 0 while none is to be

const unavailable = -14; // the code of a refusal that passes by itself
const mostTries = 10;

// state is where the activity stands now. The start and the end come by the
// clock, without asking: at the start nobody should have to wait for a poll.
function state() {
  if (!sale) return reached ? "loading" : "offline";
  if (sale.missing) return "missing";
  const now = clock.now();
  if (sale.state === "scheduled" && now >= Date.parse(sale.start)) return "open";
  if (["scheduled", "open", "sold_out"].includes(sale.state) && now >= Date.parse(sale.end)) return "ended";
  return sale.state;
}

function canBuy() {
  return state() === "open" && !busy && clock.now() >= again && rest() > 0;
}

// rest is how many units the buyer may still have.
const rest = () => (sale && sale.limit ? Math.max(0, sale.limit - share.taken(product)) : 0);

async function look() {
  const sent = Date.now();
  try {
    const answer = await api.activity(product);
    reached = true;
    if (answer.httpStatus === 200) {
      clock.learn(answer.now, answer.age, sent, Date.now());
      sale = answer;
      expectPayment(sale.pay_window_seconds > 0);
      await share.refresh(product, followed());
    } else if (answer.httpStatus === 404) {
      sale = { missing: true };
    }
  } catch {
    reached = false;
  }
  draw();
}

// pollPause is how long to wait before looking again: often while it matters,
// and never all pages at the same moment.
function pollPause() {
  const jitter = 0.75 + Math.random() / 2;
  if (!sale || sale.missing) return 3000 * jitter;
  const untilStart = Date.parse(sale.start) - clock.now();
  if (untilStart > 60000) return 15000 * jitter;
  return (state() === "ended" || state() === "closed" ? 10000 : 2000) * jitter;
}

async function poll() {
  if (!document.hidden) await look();
  setTimeout(poll, pollPause());
}

function click(event) {
  event.preventDefault();
  tries = 0;
  buy();
}

async function buy() {
  if (!canBuy()) return;
  busy = true;
  draw();
  say("Your click is on its way…");
  try {
    const answer = await api.buy(product, Number($("quantity").value) || 1);
    if (answer.httpStatus === 202) {
      tries = 0;
      follow(product, answer.order_id, { fresh: answer });
    } else {
      refused(answer);
    }
  } catch {
    say(offlineClick, "bad");
  }
  busy = false;
  draw();
}

function refused(answer) {
  if (answer.retryAfter) again = clock.now() + answer.retryAfter * 1000;
  tries = answer.code === unavailable && tries < mostTries ? tries + 1 : 0;
  refusedWith = refusal(answer);
  buyable = true; // so that it stays until a click has made no sense in between
  if (answer.code === -4 && answer.order_id) {
    follow(product, answer.order_id, { note: refusedWith });
  } else {
    say(refusedWith, "bad");
  }
  look();
}

// tryAgain sends a click again that the shop could not serve, under the same key, and
// says when.
function tryAgain() {
  if (tries === 0 || busy) return;
  const wait = Math.ceil((again - clock.now()) / 1000);
  if (!["open", "unavailable"].includes(state())) {
    tries = 0;
    say(refusedWith, "bad");
  } else if (wait > 0 || state() === "unavailable") {
    say(`${refusedWith} ${trying(wait)}`, "bad");
  } else {
    buy();
  }
}

// draw brings the page up to date; it changes only what differs, and runs every
// quarter of a second for the countdown.
function draw() {
  const where = state();
  takeBack();
  tryAgain();
  tick();
  const words = states[where] || states.loading;
  $("sale").dataset.state = where;
  set("pill", words.pill);
  const wait = Math.ceil((again - clock.now()) / 1000);
  if (busy) {
    set("buytext", "Sending…");
    set("buyzh", "提交中");
  } else if (where === "open" && wait > 0) {
    set("buytext", `Again in ${wait} s`);
    set("buyzh", "请稍候");
  } else {
    set("buytext", words.buy);
    set("buyzh", words.zh);
  }
  $("buy").setAttribute("aria-disabled", String(!canBuy()));
  set("clock", clock.timeOfDay(clock.now()));
  set("buyer", buyer.id());
  if (sale) drawSale(where);
}

// takeBack unsays a refusal once the shop sells again.
function takeBack() {
  if (busy || tries > 0) return;
  const before = buyable;
  buyable = canBuy();
  if (!buyable || before || !refusedWith) return;
  if ($("message").textContent === refusedWith) say("");
  refusedWith = "";
}

function drawSale(where) {
  if (sale.missing) {
    set("title", `No sale of product ${product}`);
    set("facts", "Nobody sells it at the moment.");
    $("countdown").hidden = $("stock").hidden = true;
    return;
  }
  drawShare();
  set("title", sale.title || `Product ${product}`);
  document.title = `${sale.title || product} · 秒杀`;
  set("facts", sale.limit === 1 ? "One for each buyer · 每人限购一件" : `Up to ${sale.limit} for each buyer · 每人限购 ${sale.limit} 件`);

  const left = where === "open" && sale.left !== false;
  $("stock").hidden = where !== "open" && where !== "sold_out";
  $("stock").dataset.left = left ? "yes" : "no";
  set("left", left ? "In stock" : "Out of stock");
  set("leftzh", left ? "有货" : "无货");

  const target = where === "scheduled" ? sale.start : sale.end;
  $("countdown").hidden = !["scheduled", "open", "sold_out", "held", "unavailable"].includes(where);
  set("until", where === "scheduled" ? "Starts in · 距开始" : "Ends in · 距结束");
  const span = clock.split(Date.parse(target) - clock.now());
  for (const part of ["days", "hours", "minutes", "seconds"]) set(part, span[part]);
  $("daysbox").hidden = span.days === "0";
}

// drawShare offers what the buyer may still buy, and nothing to who has their share. A
// click in doubt keeps its quantity.
function drawShare() {
  const full = rest() === 0;
  if (full && $("form").contains(document.activeElement)) $("order").focus();
  $("form").hidden = full;
  $("share").hidden = !full;
  if (full) set("share", `${shareWords(sale.limit)} · 已达限购数量`);
  $("quantityrow").hidden = !(sale.limit > 1);
  $("quantity").max = rest();
  const open = buyer.openPurchase(product);
  $("quantity").disabled = Boolean(open?.doubt);
  if (open?.doubt) $("quantity").value = open.quantity;
  else if (Number($("quantity").value) > rest() && !full) $("quantity").value = rest();
}

function set(id, text) {
  const element = $(id);
  if (element.textContent !== text) element.textContent = text;
}

function newBuyer() {
  buyer.renew();
  forget();
  tries = 0;
  say("You are a new buyer now.");
  draw();
}

$("form").addEventListener("submit", click);
$("pay").addEventListener("click", pay);
$("newbuyer").addEventListener("click", newBuyer);
document.addEventListener("visibilitychange", () => { if (!document.hidden) look(); });
setInterval(draw, 250);
draw();
poll();
const known = buyer.lastOrder(product);
if (known) follow(product, known);
else if (buyer.openPurchase(product)?.doubt) say(offlineClick, "bad");
