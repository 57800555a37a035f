// Which key means what. Digits by their place on the keyboard too: a French row has them under Shift.

const DIGITS = "1234567890";
const LETTERS = "cdefijklmnopqrtvwxy"; // what the commands below leave
const CLASS_KEYS = [...DIGITS, ...LETTERS];

export const COMMANDS = { u: "undo", s: "skip", g: "grid", h: "guess", a: "add", z: "zoom", b: "browse", "/": "filter", "?": "help" };

const MOVES = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };

const writes = (element) =>
  element instanceof HTMLElement && element.matches("input:not([type=checkbox]), textarea, select");

function digit(event) {
  const place = /^(?:Digit|Numpad)(\d)$/.exec(event.code);
  return place && !event.shiftKey ? place[1] : null;
}

// key → class, in the order the classes were made. A class named by a free key has that key, so that
// 7 answers "7"; any other has the first one left. A later class never moves an earlier one's key.
export function assign(classes) {
  const keys = new Map();
  for (const one of classes) {
    const name = one.name.toLowerCase();
    const key = [name, ...CLASS_KEYS].find((each) => CLASS_KEYS.includes(each) && !keys.has(each));
    if (key !== undefined) keys.set(key, one);
  }
  return keys;
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
