// Who answers, and what the keys are.

import { find, make, say, show } from "./dom.js";
import * as server from "./server.js";

const ANNOTATOR = "askance/annotator";
const SHORTCUTS = "askance/shortcuts";

export function recall(key, otherwise = null) {
  try {
    return localStorage.getItem(key) ?? otherwise;
  } catch {
    return otherwise;
  }
}

export function remember(key, value) {
  try {
    localStorage.setItem(key, value);
  } catch {
    // Asked again next time; nothing else depends on it.
  }
}

export const annotator = () => recall(ANNOTATOR, "");

// Resolves with a name; only a first one may not be refused.
export function askName(current, suggestion) {
  const dialog = find("who"), input = find("who-input");
  input.value = current || suggestion || "";
  show(find("invite"), Boolean(current));
  say(find("invite-words"), "");
  dialog.returnValue = "";
  dialog.showModal();
  input.select();
  return new Promise((resolve) => {
    const closed = () => {
      const name = input.value.trim().replace(/\s+/g, " ");
      if (!current && !name) return dialog.showModal();
      dialog.removeEventListener("close", closed);
      const given = dialog.returnValue === "start" && name ? name : current || name;
      remember(ANNOTATOR, given);
      resolve(given);
    };
    dialog.addEventListener("close", closed);
  });
}

const KEYS = [
  ["1 … 9, 0", "answer with the class that shows this key; letters follow where there are more than ten"],
  ["Space, ↓, ↑", "scroll a long text; Page Down, Page Up, Home and End too"],
  ["/", "find a class by name, Enter answers with it"],
  ["u", "undo the last answer or skip; again for the one before"],
  ["s", "skip this item"],
  ["g", "one item, or a grid of them; arrow keys move in the grid"],
  ["b", "all items, to look through and to change answers; b or Escape goes back to the questions"],
  ["Space", "in the list of all items: selects or leaves out an item, once several can be selected"],
  ["z", "the picture at its full resolution; z or Escape closes it"],
  ["h", "show or hide the model’s guess"],
  ["a", "add a class"],
  ["e", "classes: names, guidance, order and keys"],
  ["?", "this help"],
];

// A link that works once; where none is needed the server says so.
async function invite() {
  try {
    say(find("invite-words"), `It works once: ${(await server.post("tickets", {})).url}`);
  } catch (error) {
    say(find("invite-words"), error.message);
  }
}

export function setUpDialogs() {
  find("invite-button").addEventListener("click", invite);
  find("help-keys").replaceChildren(...KEYS.flatMap(([key, words]) =>
    [make("dt", {}, make("kbd", {}, key)), make("dd", {}, words)]));
  const tick = find("shortcuts");
  tick.checked = recall(SHORTCUTS, "on") === "on";
  tick.addEventListener("change", () => remember(SHORTCUTS, tick.checked ? "on" : "off"));
}

export const shortcuts = () => find("shortcuts").checked;
