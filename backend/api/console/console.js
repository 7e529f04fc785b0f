"use strict";

// One table, asked for again each second after the last answer; a slow backend
// is never asked twice at once. What is on the page changes only where an answer
// differs, so that nothing blinks and a marked text stays marked.
const rows = document.getElementById("rows");
const asOf = document.getElementById("status");
const problem = document.getElementById("problem");
const notes = document.getElementById("notes");
const empty = document.getElementById("empty");
const login = document.getElementById("login");
let token = sessionStorage.getItem("token") || "";
const tried = new Set(); // tokens that the API has refused: none is sent again

// The words of the shop's page for where an activity stands.
const words = {
  scheduled: "Not started", open: "On sale", sold_out: "Sold out", held: "Paused",
  unavailable: "Unavailable", ended: "Ended", closed: "Closed",
};

class TokenNeeded extends Error {}

const authorized = () => ({
  headers: token ? { Authorization: "Bearer " + token } : {}, signal: AbortSignal.timeout(8000),
});

async function ask(path) {
  const sent = token;
  const answer = await fetch(path, authorized());
  if (answer.status === 401) {
    if (sent) tried.add(sent);
    throw new TokenNeeded(sent ? "This token is wrong." : "This API needs its token.");
  }
  const body = await answer.json();
  if (!answer.ok) {
    throw new Error(body.detail || answer.statusText);
  }
  return body;
}

function cellsOf(activity, audit) {
  const stock = activity.redis;
  const number = (value) => (value === undefined ? "–" : value.toLocaleString("en"));
  const moving = audit && !audit.consistent;
  const orders = audit && Object.values(audit.orders).reduce((sum, n) => sum + n, 0);
  return [
    [activity.product_id], [activity.title],
    [words[activity.sale], activity.sale],
    [moving ? "moving" : number(audit?.drift), "n" + (audit && !moving ? (audit.drift === 0 ? " good" : " bad") : "")],
    [number(activity.total) + (activity.target ? " → " + number(activity.target) : ""), "n"],
    ...["available", "frozen", "sold", "outbox"].map((name) => [number(stock?.[name]), "n"]),
    [number(orders), "n"],
    ...["paid", "cancelled", "expired"].map((state) => [number(audit && (audit.orders[state] || 0)), "n"]),
    [activity.why],
  ];
}

// list brings the elements of a parent in line with what they are to say, each
// [text, class].
function list(parent, tag, wanted) {
  while (parent.children.length > wanted.length) parent.lastElementChild.remove();
  wanted.forEach(([text, kind = ""], i) => {
    const element = parent.children[i] || parent.appendChild(document.createElement(tag));
    if (element.textContent !== text) element.textContent = text;
    if (element.className !== kind) element.className = kind;
  });
}

function draw(activities, audits) {
  while (rows.rows.length > activities.length) rows.lastElementChild.remove();
  activities.forEach((activity, i) => list(rows.rows[i] || rows.insertRow(), "td", cellsOf(activity, audits[i])));
  empty.hidden = activities.length > 0;
}

// ready is what /readyz says: what is missing, and what should be looked after. Its
// reasons come with the token only.
async function ready() {
  const body = await (await fetch("readyz", authorized())).json();
  return [
    ...(body.not_ready || []).map((name) => "not ready, " + name + ": " + (body.why?.[name] || "away")),
    ...(body.warnings || []).map((name) => body.why?.[name] || name),
  ];
}

async function refunds() {
  const due = (await ask("api/refunds?limit=1")).total;
  return due === 0 ? [] : [due.toLocaleString("en") + (due === 1 ? " payment" : " payments") +
    " came too late or twice: give the money back. seckilld refund list"];
}

// What was warned of last, by who warns: it stays until that one says otherwise.
const warned = [[], []];

async function warn() {
  const said = await Promise.allSettled([ready(), refunds()]);
  said.forEach((answer, i) => { if (answer.status === "fulfilled") warned[i] = answer.value; });
  const lines = warned.flat();
  list(notes, "li", lines.map((text) => [text]));
  notes.hidden = lines.length === 0;
  return said.find((answer) => answer.status === "rejected")?.reason;
}

// refresh asks for everything once. The list first and alone: a token that is refused
// is then refused once.
async function refresh() {
  const activities = (await ask("api/activities")).activities;
  login.hidden = true;
  // A product is audited through the activity it sells through.
  const seen = new Set();
  const audits = activities.map((activity) => {
    if (activity.state === "closed" || seen.has(activity.product_id)) return undefined;
    seen.add(activity.product_id);
    return ask("api/activities/" + encodeURIComponent(activity.product_id) + "/audit").catch(() => undefined);
  });
  const failure = await warn();
  draw(activities, await Promise.all(audits));
  if (failure) throw failure;
}

function tell(text) {
  if (problem.textContent !== text) problem.textContent = text;
  problem.hidden = text === "";
}

let asking = false; // one at a time

async function go() {
  if (asking) return;
  asking = true;
  let again = true;
  try {
    await refresh();
    asOf.textContent = "as of " + new Date().toLocaleTimeString();
    tell("");
  } catch (error) {
    if (error instanceof TokenNeeded) {
      again = false; // until somebody gives another one
      token = "";
      sessionStorage.removeItem("token");
      login.hidden = false;
      tell(error.message);
    } else {
      tell("No answer: " + error.message);
    }
  }
  asking = false;
  if (again) setTimeout(go, 1000);
}

login.addEventListener("submit", (event) => {
  event.preventDefault();
  const given = document.getElementById("token").value;
  if (tried.has(given)) {
    tell("This token is wrong.");
    return;
  }
  token = given;
  sessionStorage.setItem("token", token);
  tell("");
  go();
});

go();
