// Every sentence that a buyer reads. The keys are what the edge answers.

// An activity's state: what the pill says, and what the button says in two
// languages. Only "open" can be bought from.
export const states = {
  loading: { pill: "Looking", buy: "One moment…", zh: "请稍候" },
  scheduled: { pill: "Starts soon · 即将开始", buy: "Not started yet", zh: "即将开始" },
  open: { pill: "On sale · 进行中", buy: "Buy now", zh: "立即抢购" },
  sold_out: { pill: "Sold out · 已售罄", buy: "Sold out", zh: "已售罄" },
  held: { pill: "Paused · 暂停", buy: "Paused by the seller", zh: "活动暂停" },
  unavailable: { pill: "One moment · 请稍候", buy: "One moment…", zh: "请稍候" },
  ended: { pill: "Over · 已结束", buy: "The sale is over", zh: "已结束" },
  closed: { pill: "Over · 已结束", buy: "The sale is over", zh: "已结束" },
  missing: { pill: "No sale", buy: "Nothing to buy here", zh: "没有活动" },
  offline: { pill: "No connection", buy: "Connecting…", zh: "连接中" },
};

// A refused click, by the code of the answer.
const refusals = {
  "-1": "That quantity cannot be bought. Choose a smaller one.",
  "-2": "The sale has not started yet. The countdown shows when it does.",
  "-3": "The sale is over.",
  "-4": "You have bought your share already. This is your order:",
  "-5": "There is no sale of this product.",
  "-6": "Sold out: every unit is taken. A unit that is given back is on sale again.",
  "-7": "Fewer units are left than you asked for. Try a smaller quantity.",
  "-8": "The seller has paused the sale. It may go on later.",
  "-13": "Your ticket is not good any more. Click again.",
  "-10": "Too many clicks at once. Wait a moment.",
  "-11": "The crowd is larger than what is left. Try again in a second.",
  "-14": "The shop cannot sell for a moment. Nothing is lost; try again shortly.",
};

// Refusals that carry no code, by the HTTP status.
const statuses = {
  401: "The shop does not know who you are. Log in first.",
  429: "Too many open pages. Close one.",
  503: "The shop cannot answer at the moment. Try again shortly.",
};

// refusal says in plain words why a click came to nothing.
export function refusal(answer) {
  return refusals[answer.code] || statuses[answer.httpStatus] || answer.detail ||
    "The shop gave an answer that this page does not understand. Try again.";
}

// An order's state: words for the buyer, and how the three steps look.
export const fates = {
  queued: { text: "Queued: your units are reserved, the order is being written.", steps: ["done", "now", ""], tone: "" },
  unpaid: { text: "Created: your order is stored and waits for your payment.", steps: ["done", "done", "now"], tone: "good" },
  created: { text: "Created: your order is stored.", steps: ["done", "done", "done"], tone: "good" },
  paid: { text: "Paid. Thank you.", steps: ["done", "done", "done"], tone: "good" },
  cancelled: { text: "Cancelled. Your units are back on sale.", steps: ["done", "done", "failed"], tone: "bad" },
  expired: { text: "Expired: it was not paid in time. Your units are back on sale.", steps: ["done", "done", "failed"], tone: "bad" },
  rejected: { text: "Rejected.", steps: ["done", "failed", ""], tone: "bad" },
  unknown: { text: "The shop does not know this order under your name.", steps: ["done", "failed", ""], tone: "bad" },
};

// Why an order was rejected.
export const reasons = {
  oversold: "Rejected: the last unit went to somebody else. You are not charged.",
  sold_out: "Rejected: the last unit went to somebody else. You are not charged.",
  duplicate: "Rejected: you have an order for this already.",
  unknown_activity: "Rejected: this sale does not exist any more.",
  invalid: "Rejected: the quantity is not allowed.",
  dead_letter: "Rejected: the shop could not store your order. You are not charged and may try again.",
  held: "Rejected: the seller had paused the sale. You are not charged.",
  unavailable: "Rejected: the shop could not reserve your units in time. You are not charged and may try again.",
  too_few: "Rejected: fewer units were left than you asked for. You are not charged.",
  ended: "Rejected: the sale was over. You are not charged.",
  already_bought: "Rejected: you have bought your share already.",
  lost: "Rejected: the order was lost in a failure. You are not charged and may try again.",
};

export const offlineClick = "No answer: your click may or may not have arrived. Click again; nobody buys twice by that.";
export const late = "It takes longer than promised. This page keeps asking.";
