// The classes as buttons, each with its key; a filter where they are many; new ones on the way.

import { find, make, plural, say, show } from "./dom.js";
import { token } from "./outbox.js";
import * as server from "./server.js";

const FEW = 10; // more have a filter
const SHORT = 3; // letters of a name that needs little room
const MANY = 30; // more scroll in a box of their own

export class Choices {
  // choose(class) answers; added(class, reply) is told of a new one.
  constructor(choose, added) {
    this.classes = [];
    this.keys = new Map();
    this.choose = choose;
    this.added = added;
    this.box = find("classes");
    this.input = find("filter-input");
    this.input.addEventListener("input", () => this.filter());
    this.input.addEventListener("keydown", (event) => this.typed(event));
    find("adding").addEventListener("submit", (event) => { event.preventDefault(); this.add(); });
    find("adding-cancel").addEventListener("click", () => this.close());
    find("adding").addEventListener("keydown", (event) => event.key === "Escape" && this.close());
  }

  update(classes) {
    if (JSON.stringify(classes) === JSON.stringify(this.classes)) return;
    this.classes = classes;
    show(find("filter"), classes.length > FEW);
    this.keys = new Map(classes.filter((one) => one.key).map((one) => [one.key, one]));
    this.box.classList.toggle("many", classes.length > MANY);
    this.box.classList.toggle("short", classes.every((one) => one.name.length <= SHORT));
    this.box.replaceChildren(...classes.map((one) => this.button(one)));
    this.enable(this.possible ?? false);
    this.filter();
  }

  key(id) {
    return this.classes.find((one) => one.id === id)?.key;
  }

  button(one) {
    const key = this.key(one.id);
    return make("button", { type: "button", "data-class": one.id, title: one.description || false, "aria-keyshortcuts": key ?? false,
      onclick: () => this.choose(one) },
    key ? make("kbd", { "aria-hidden": "true" }, key) : null, make("span", { dir: "auto" }, one.name));
  }

  enable(possible) {
    this.possible = possible; // not `disabled`, which would take the focus from under a finger
    for (const button of this.box.children) button.setAttribute("aria-disabled", String(!possible));
  }

  // The button answers to the eye even where a key was pressed.
  flash(id) {
    const button = this.box.querySelector(`[data-class="${id}"]`);
    if (!button) return;
    button.classList.add("given");
    setTimeout(() => button.classList.remove("given"), 180);
  }

  guessed(id) {
    for (const button of this.box.children) button.classList.toggle("guessed", Number(button.dataset.class) === id);
  }

  matching() {
    const sought = this.input.value.trim().toLowerCase();
    const starts = (one) => one.name.toLowerCase().startsWith(sought);
    const matches = this.classes.filter((one) => one.name.toLowerCase().includes(sought));
    return [...matches.filter(starts), ...matches.filter((one) => !starts(one))];
  }

  filter() {
    const ids = new Set(this.matching().map((one) => one.id));
    for (const button of this.box.children) show(button, ids.has(Number(button.dataset.class)));
    if (this.input.value) say(find("live"), `${plural(ids.size, "class", "classes")} match.`);
  }

  typed(event) {
    if (event.key === "Escape") this.leave();
    if (event.key !== "Enter" || event.repeat || !this.input.value.trim()) return;
    const [first] = this.matching();
    if (!first) return this.open(this.input.value.trim());
    this.choose(first);
    this.leave();
  }

  leave() {
    this.input.value = "";
    this.filter();
    find("stage").focus({ preventScroll: true });
  }

  open(name = "") {
    show(find("adding"), true);
    show(find("adding-wrong"), false);
    find("adding-input").value = name;
    find("adding-input").focus();
    this.token = token();
  }

  close() {
    show(find("adding"), false);
    this.leave();
  }

  async add() {
    const name = find("adding-input").value.trim();
    if (!name) return;
    try {
      const reply = await server.post("classes", { name, token: this.token });
      this.close();
      this.added(reply.class);
    } catch (error) {
      // A name that was refused needs a new token; one that got no reply keeps its own.
      if (error.refused) this.token = token();
      say(find("adding-wrong"), error.message ?? String(error));
      show(find("adding-wrong"), true);
    }
  }
}
