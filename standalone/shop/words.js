// Every sentence that a buyer reads. The keys are what the edge answers.

// An activity's state: what the pill says, in the console's word and in Chinese, and
// what the button says in the two. Only "open" can be bought from.
export const states = {
  loading: { pill: "Loading", buy: "One moment…", zh: "请稍候" },
  scheduled: { pill: "Not started · 即将开始", buy: "Not started yet", zh: "即将开始" },
  open: { pill: "On sale · 进行中", buy: "Buy now", zh: "立即抢购" },
  sold_out: { pill: "Sold out · 已售罄", buy: "Sold out", zh: "已售罄" },
  held: { pill: "Paused · 暂停", buy: "Paused by the seller", zh: "活动暂停" },
  unavailable: { pill: "Unavailable · 请稍候", buy: "Cannot sell at the moment", zh: "请稍候" },
  ended: { pill: "Ended · 已结束", buy: "The sale is over", zh: "已结束" },
  closed: { pill: "Closed · 已结束", buy: "The sale is over", zh: "已结束" },
  missing: { pill: "No sale · 没有活动", buy: "Nothing to buy here", zh: "没有活动" },
  offline: { pill: "No connection", buy: "Connecting…", zh: "连接中" },
};

// A refused click, by the code of the answer.
const refusals = {
  "-1": "That quantity cannot be bought. Choose a smaller one.",
  "-2": "The sale has not started yet. The countdown shows when it does.",
  "-3": "The sale is over.",
  "-4": "You have bought already, and your share allows no more. This is your order:",
  "-5": "There is no sale of this product.",
  "-6": "Sold out: every unit is taken. A unit that is given back is on sale again.",
  "-7": "Fewer units are left than you asked for. Try a smaller quantity.",
  "-8": "The seller has paused this sale. It may go on later.",
  "-9": "This click differs from the one before. Click again.",
  "-10": "Too many clicks at once. Wait a moment.",
  "-11": "The crowd is larger than what is left. Try again in a second.",
  "-13": "Your ticket is not good any more. Click again.",
  "-14": "The shop cannot sell at the moment.",
};

// Refusals that carry no code, by the HTTP status.
const statuses = {
  401: "The shop does not know who you are. Log in first.",
  408: "Your click did not come through in time, and nothing was bought. Click again.",
  429: "Too many open pages. Close one.",
  503: "The shop cannot answer at the moment. Try again shortly.",
};

// refusal says in plain words why a click came to nothing.
export function refusal(answer) {
  return refusals[answer.code] || statuses[answer.httpStatus] || answer.detail ||
    "The shop gave an answer that this page does not understand. Try again.";
}

// An order's state: its name, words for the buyer, and how the steps look. An order
// without a payment stage has no fourth step.
export const fates = {
  queued: { name: "In the queue · 排队中", text: "In the queue: your units are reserved, the order is being stored.", steps: ["done", "now", ""], tone: "" },
  unpaid: { name: "Waiting for payment · 待付款", text: "Your order is stored and waits for your payment.", steps: ["done", "done", "done", "now"], tone: "good" },
  created: { name: "Stored · 已下单", text: "Your order is stored. There is nothing more to do.", steps: ["done", "done", "done"], tone: "good" },
  paid: { name: "Paid · 已付款", text: "Paid. Thank you.", steps: ["done", "done", "done", "done"], tone: "good" },
  cancelled: { name: "Cancelled · 已取消", text: "Your order was cancelled. Its units are back on sale.", steps: ["done", "done", "done", "failed"], tone: "bad" },
  expired: { name: "Expired · 已过期", text: "Your order has expired: it was not paid in time. Its units are back on sale.", steps: ["done", "done", "done", "failed"], tone: "bad" },
  rejected: { name: "Not accepted · 未成功", text: "Your order was not accepted.", steps: ["done", "failed", ""], tone: "bad" },
  unknown: { name: "Not known · 未知", text: "The shop does not know this order under your name.", steps: ["done", "failed", ""], tone: "bad" },
};

// What a step's look says to who does not see it.
export const looks = { done: "done", now: "in progress", failed: "failed", "": "to come" };

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
export const trying = (seconds) => (seconds > 0 ? `Trying again in ${seconds} s.` : "Trying again as soon as it sells.");
export const share = (limit) => (limit === 1 ? "You have bought your share: one for each buyer." : `You have bought your share: ${limit} for each buyer.`);

// What came of a payment, by the API's outcome.
export const payments = {
  sending: "Your payment is on its way…",
  applied: "Paid. Thank you.",
  refund_due: "The payment came too late for this order. It will be given back.",
  unknown: "No answer about the payment. Pay again; nobody pays twice by that.",
};
