"use strict";

// One table, asked for again each second after the last answer; a slow backend
// is never asked twice at once.
const rows = document.getElementById("rows");
const status = document.getElementById("status");
const notes = document.getElementById("notes");
const empty = document.getElementById("empty");
const login = document.getElementById("login");
let token = sessionStorage.getItem("token") || "";

async function ask(path) {
  const headers = token ? { Authorization: "Bearer " + token } : {};
  const answer = await fetch(path, { headers, signal: AbortSignal.timeout(8000) });
  if (answer.status === 401) {
    login.hidden = false;
    throw new Error("the API asks for its token");
  }
  login.hidden = true;
  const body = await answer.json();
  if (!answer.ok) {
    throw new Error(body.detail || answer.statusText);
  }
  return body;
}

function cell(row, text, kind) {
  const td = row.insertCell();
  td.textContent = text;
  if (kind) {
    td.className = kind;
  }
}

function show(activity, audit) {
  const row = document.createElement("tr");
  const stock = activity.redis;
  const number = (value) => (value === undefined ? "–" : value.toLocaleString("en"));
  cell(row, activity.product_id);
  cell(row, activity.title);
  const state = activity.archived_at ? "archived" : activity.state;
  cell(row, stock && stock.state !== activity.state ? state + " (Redis: " + stock.state + ")" : state);
  const moving = audit && !audit.consistent;
  cell(row, moving ? "moving" : number(audit?.drift), "n" + (audit && !moving ? (audit.drift === 0 ? " good" : " bad") : ""));
  cell(row, number(activity.total) + (activity.target ? " → " + number(activity.target) : ""), "n");
  for (const name of ["available", "frozen", "sold", "outbox"]) {
    cell(row, number(stock?.[name]), "n");
  }
  const orders = audit && Object.values(audit.orders).reduce((sum, n) => sum + n, 0);
  cell(row, number(orders), "n");
  for (const state of ["paid", "cancelled", "expired"]) {
    cell(row, number(audit && (audit.orders[state] || 0)), "n");
  }
  cell(row, activity.why);
  return row;
}

// ready is what /readyz says: what is missing, and what should be looked after. Its
// reasons come with the token only.
async function ready() {
  const headers = token ? { Authorization: "Bearer " + token } : {};
  const body = await (await fetch("readyz", { headers, signal: AbortSignal.timeout(8000) })).json();
  return [
    ...(body.not_ready || []).map((name) => "not ready, " + name + ": " + (body.why?.[name] || "away")),
    ...(body.warnings || []).map((name) => body.why?.[name] || name),
  ];
}

function note(lines) {
  notes.hidden = lines.length === 0;
  notes.replaceChildren(...lines.map((text) => {
    const item = document.createElement("li");
    item.textContent = text;
    return item;
  }));
}

async function refresh() {
  let lines = [];
  try {
    lines = await ready();
    note(lines);
    const list = (await ask("api/activities")).activities;
    // A product is audited through the activity it sells through.
    const seen = new Set();
    const shown = await Promise.all(list.map(async (activity) => {
      if (activity.state === "closed" || seen.has(activity.product_id)) {
        return show(activity);
      }
      seen.add(activity.product_id);
      const audit = await ask("api/activities/" + encodeURIComponent(activity.product_id) + "/audit").catch(() => undefined);
      return show(activity, audit);
    }));
    const due = (await ask("api/refunds?limit=1")).total;
    if (due > 0) {
      lines.push(due.toLocaleString("en") + (due === 1 ? " payment" : " payments") +
        " came too late or twice: give the money back. seckilld refund list");
      note(lines);
    }
    rows.replaceChildren(...shown);
    empty.hidden = list.length > 0;
    status.textContent = "as of " + new Date().toLocaleTimeString();
    status.className = "";
  } catch (error) {
    status.textContent = "No answer: " + error.message;
    status.className = "bad";
  }
  setTimeout(refresh, 1000);
}

login.addEventListener("submit", (event) => {
  event.preventDefault();
  token = document.getElementById("token").value;
  sessionStorage.setItem("token", token);
});

refresh();
