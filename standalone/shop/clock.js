// The shop's clock: the server says the time, and what counts down follows it
// and not the clock of this machine.

let offset = 0; // milliseconds to add to this machine's clock
let best = { trip: Infinity, at: 0 }; // the answer that offset comes from

// learn takes the server's time from an answer asked for at sent and received
// at received, ageSeconds of them spent in a cache. The fastest answer tells
// the time best; it counts for a minute.
export function learn(serverNow, ageSeconds, sent, received) {
  const then = Date.parse(serverNow);
  const trip = received - sent + ageSeconds * 1000;
  if (Number.isNaN(then) || (trip > best.trip && received - best.at < 60000)) return;
  best = { trip, at: received };
  offset = then + ageSeconds * 1000 - (sent + received) / 2;
}

// now is the shop's time in milliseconds.
export const now = () => Date.now() + offset;

const two = (n) => String(n).padStart(2, "0");

// split takes a span of milliseconds apart; a part of a second counts as one,
// so that nothing shows 0 before its time.
export function split(ms) {
  const seconds = Math.max(0, Math.ceil(ms / 1000));
  return {
    days: String(Math.floor(seconds / 86400)),
    hours: two(Math.floor(seconds / 3600) % 24),
    minutes: two(Math.floor(seconds / 60) % 60),
    seconds: two(seconds % 60),
  };
}

// timeOfDay writes a moment as hours, minutes and seconds here.
export function timeOfDay(ms) {
  const d = new Date(ms);
  return `${two(d.getHours())}:${two(d.getMinutes())}:${two(d.getSeconds())}`;
}
