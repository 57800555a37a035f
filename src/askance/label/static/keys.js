// Which key means what. Digits by their place on the keyboard too: a French row has them under Shift.

export const COMMANDS = { u: "undo", s: "skip", g: "grid", h: "guess", a: "add", z: "zoom", b: "browse", e: "classes", "/": "filter", "?": "help" };

const MOVES = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };

const writes = (element) =>
  element instanceof HTMLElement && element.matches("input:not([type=checkbox]), textarea, select");

function digit(event) {
  const place = /^(?:Digit|Numpad)(\d)$/.exec(event.code);
  return place && !event.shiftKey ? place[1] : null;
}

// How far a key scrolls what is looked at, in heights of it; null for any other key.
export function scrolled(event) {
  if (event.ctrlKey || event.metaKey || event.altKey) return null;
  if (event.key === " ") return event.shiftKey ? -0.85 : 0.85;
  return { ArrowDown: 0.15, ArrowUp: -0.15, PageDown: 0.85, PageUp: -0.85, Home: -Infinity, End: Infinity }[event.key] ?? null;
}

// What an event asks for: {command}, {answer: class}, {move: [right, down]} or null.
export function meaning(event, keys, shortcuts) {
  if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing || event.repeat) return null;
  if (document.querySelector("dialog[open]:not(#zoom)") || writes(event.target)) return null;
  if (MOVES[event.key]) return { move: MOVES[event.key] };
  if (!shortcuts) return null;
  const key = event.key.length === 1 ? event.key.toLowerCase() : event.key;
  if (COMMANDS[key]) return { command: COMMANDS[key] };
  const answer = keys.get(key) ?? keys.get(digit(event));
  return answer ? { answer } : null;
}
