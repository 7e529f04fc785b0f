// The page's elements by their ids, and the one line that speaks to the buyer.

export const $ = (id) => document.getElementById(id);

// say tells the buyer something; a screen reader reads it aloud, once.
export function say(text, tone = "") {
  const line = $("message");
  line.dataset.tone = tone;
  if (line.textContent !== text) line.textContent = text;
}
