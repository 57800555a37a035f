// All items, to look through and to correct: filters, pages, one or many selected, and what an answer does to them.

import { count, find, make, plural, say, show } from "./dom.js";
import { recall, remember } from "./dialogs.js";
import { cell, closer, refresh } from "./list.js";
import * as server from "./server.js";

const PAGE = 48;
const ALIKE = 24; // look-alikes that are shown at once
const TYPING = 250; // ms after the last letter of a search
const FILTER = { show: "all", class: "", annotator: "", guess: "", sure: "", order: "data", search: "", like: "" };
const FIELDS = Object.keys(FILTER).filter((name) => name !== "like");

const announce = (words) => say(find("live"), words);

export class Browse {
  constructor(sender, choices, questions) {
    Object.assign(this, { sender, choices, questions });
    this.open = false;
    this.filter = { ...FILTER };
    this.offset = this.total = this.active = 0;
    this.items = [];
    this.selected = new Set();
    this.several = false;
    this.list = recall("askance/list") === "on";
    for (const name of FIELDS) {
      const field = find(`browse-${name}`);
      field.addEventListener(name === "search" ? "input" : "change", () => this.typed(name, field.value));
    }
    const clicks = { back: () => this.page(-1), next: () => this.page(1), several: () => this.many(!this.several),
      every: () => this.every(), none: () => this.select([]), list: () => this.toggleList(), accept: () => this.guesses(),
      yes: () => this.accept(), alike: () => this.alike(), reset: () => this.look({}) };
    for (const [name, act] of Object.entries(clicks)) find(`browse-${name}`).addEventListener("click", act);
    sender.outbox.addEventListener("saved", ({ detail }) => this.saved(detail.entry, detail.reply));
    sender.outbox.addEventListener("refused", () => this.open && this.load());
    addEventListener("hashchange", () => this.follow());
  }

  // ---- where the page is: #items?show=…&guess=… can be linked to

  toggle() {
    location.hash = this.open ? "" : "#items";
  }

  follow() {
    const [view, query] = location.hash.split("?");
    if (view !== "#items") return this.close();
    const { at, ...filter } = Object.fromEntries(new URLSearchParams(query));
    return this.look(filter, at);
  }

  close() {
    if (!this.open) return;
    this.open = false;
    this.show();
    this.questions.shown(true);
  }

  show() {
    document.body.dataset.view = this.open ? "items" : "questions";
    show(find("browse"), this.open);
    find("view-items").setAttribute("aria-pressed", String(this.open));
    find("view-questions").setAttribute("aria-pressed", String(!this.open));
    document.body.classList.toggle("listed", this.list);
  }

  // Look at the items of a filter from its first page; `at` is the item to begin with.
  look(filter, at = null, several = false) {
    this.filter = { ...FILTER, ...filter };
    this.offset = 0;
    if (!this.open) this.questions.shown(false);
    this.open = true;
    this.several = several;
    this.fields();
    this.show();
    return this.load(at);
  }

  fields() {
    const { classes } = this.choices;
    const of = (all, list) => [make("option", { value: "" }, all), ...list.map(([value, name]) => make("option", { value }, name))];
    const named = classes.map((one) => [one.id, one.name]);
    find("browse-class").replaceChildren(...of("any answer", named));
    find("browse-guess").replaceChildren(...of("any guess", named));
    find("browse-annotator").replaceChildren(...of("anybody", this.sender.state.annotators.map(({ name }) => [name, name])));
    for (const name of FIELDS) find(`browse-${name}`).value = this.filter[name];
    show(find("browse-annotator").parentElement, this.sender.state.annotators.length > 1);
  }

  typed(name, value) {
    this.filter = { ...this.filter, [name]: value, like: "" };
    this.offset = 0;
    clearTimeout(this.waiting);
    this.waiting = setTimeout(() => this.load(), name === "search" ? TYPING : 0);
  }

  page(step) {
    const next = this.offset + step * this.size;
    if (next < 0 || next >= this.total) return undefined;
    this.offset = next;
    return this.load();
  }

  get size() {
    return this.filter.like ? ALIKE : PAGE;
  }

  query() {
    const { sure, ...filter } = this.filter;
    const [least, most] = sure ? sure.split("-") : [];
    const given = Object.entries({ ...filter, least, most, offset: this.offset, n: this.size });
    return new URLSearchParams(given.filter(([, value]) => value !== "" && value !== undefined));
  }

  async load(at = null, spoken = true) {
    const asked = this.asked = this.query().toString();
    let reply;
    try {
      reply = await server.items(asked);
    } catch (error) {
      return this.sender.lost(error);
    }
    if (asked !== this.asked || !this.open) return undefined; // overtaken
    if (!reply.items.length && this.offset) return this.page(-1);
    this.items = reply.items;
    this.total = reply.total;
    this.likeness = reply.likeness;
    this.active = Math.max(0, this.items.findIndex((item) => item.item === at));
    this.selected = new Set(this.several ? this.items.map((item) => item.item) : []);
    find("browse-items").replaceChildren(...this.items.map((item, place) => cell(item, (event) => this.clicked(place, event))));
    find("browse-items").classList.toggle("texts", this.items[0]?.kind !== "image");
    this.mark();
    this.near();
    return spoken ? announce(`${plural(this.total, "item")} match.`) : undefined;
  }

  // ---- what is selected

  get chosen() {
    if (this.several) return this.items.filter((item) => this.selected.has(item.item));
    return this.items.slice(this.active, this.active + 1);
  }

  clicked(place, event) {
    if ((event.ctrlKey || event.metaKey) && !this.several) this.many(true);
    this.active = place;
    if (this.several) {
      const { item } = this.items[place];
      if (!this.selected.delete(item)) this.selected.add(item);
    }
    this.mark();
    this.near();
  }

  select(items) {
    this.several = true;
    this.selected = new Set(items);
    this.mark();
  }

  every() {
    this.select(this.items.map((item) => item.item));
  }

  many(several) {
    this.several = several;
    this.selected.clear();
    this.mark();
  }

  move([right, down]) {
    const columns = getComputedStyle(find("browse-items")).gridTemplateColumns.split(" ").length;
    const place = this.active + right + down * columns;
    if (place < 0 || place >= this.items.length) return;
    this.active = place;
    this.mark();
    const button = find("browse-items").children[place];
    button.focus({ preventScroll: true });
    button.scrollIntoView({ block: "nearest" });
    this.near();
  }

  mark() {
    [...find("browse-items").children].forEach((button, place) => {
      const item = this.items[place];
      refresh(button, item, place === this.active, this.selected.has(item.item), this.several);
    });
    const n = this.chosen.length;
    const first = this.total ? this.offset + 1 : 0;
    say(find("browse-count"), `${count(first)}–${count(this.offset + this.items.length)} of ${plural(this.total, "item")}`
      + `${this.filter.like ? " that look most alike" : ""}${this.several ? ` · ${count(n)} selected` : ""}`);
    find("browse-back").setAttribute("aria-disabled", String(this.offset === 0));
    find("browse-next").setAttribute("aria-disabled", String(this.offset + this.items.length >= this.total));
    find("browse-several").setAttribute("aria-pressed", String(this.several));
    find("browse-list").setAttribute("aria-pressed", String(this.list));
    show(find("browse-every"), this.several);
    show(find("browse-none"), this.several);
    const accepted = this.accepted;
    show(find("browse-yes"), this.several && n > 0 && Boolean(accepted));
    say(find("browse-yes"), `Accept ${plural(n, "item")} as ${accepted?.name ?? ""}`);
    show(find("browse-empty"), !this.items.length);
    show(find("browse-alike"), this.likeness === true && this.items.length > 0);
    this.choices.enable(n > 0);
    this.choices.guessed(null);
    find("zoom-button").hidden = this.items[this.active]?.kind !== "image";
  }

  // The active item closer; its history comes from the server.
  async near() {
    const item = this.items[this.active];
    this.image = closer(item, null);
    if (!item) return;
    try {
      const whole = await server.item(item.item);
      if (this.items[this.active] !== item || !this.open) return;
      if (item.kind !== "image" || whole.history.length) this.image = closer(item, whole);
    } catch (error) {
      if (!error.refused) this.sender.lost(error);
    }
  }

  // What can be looked at closely.
  get question() {
    const item = this.items[this.active];
    return item && this.image ? { ...item, image: this.image } : null;
  }

  // ---- answers

  answer(one) {
    const items = this.chosen;
    if (!items.length) return announce("Nothing is selected.");
    const body = { items: items.map((item) => item.item), class: one.id };
    const { token } = this.sender.put("changes", body, { name: one.name });
    this.questions.changed(token, items, one.name);
    for (const item of items) item.pending = one.name;
    this.choices.flash(one.id);
    if (this.several) this.selected.clear();
    this.mark();
    if (!this.several && this.active + 1 < this.items.length) this.move([1, 0]);
    return undefined;
  }

  // What the selected ones are accepted as: the class that is guessed, or that of the item they look like.
  get accepted() {
    const { guess, like } = this.filter;
    const id = guess !== "" ? Number(guess) : this.items.find((item) => item.item === like)?.class ?? this.likeClass;
    return this.choices.classes.find((one) => one.id === id);
  }

  accept() {
    const one = this.accepted;
    if (one) this.answer(one);
  }

  guesses() {
    const guess = this.filter.guess !== "" ? this.filter.guess : String(this.items[this.active]?.guess?.class ?? this.choices.classes[0]?.id ?? "");
    this.look({ show: "unanswered", guess, order: "surest" }, null, true);
  }

  alike() {
    const item = this.items[this.active];
    this.likeClass = item.class ?? undefined;
    this.look({ show: "unanswered", like: item.item }, null, true);
  }

  toggleList() {
    this.list = !this.list;
    remember("askance/list", this.list ? "on" : "off");
    this.show();
    this.mark();
  }

  // What was accepted at once leaves the page; one that was changed stays where it is.
  saved(entry, reply) {
    if (!this.open) return;
    if (entry.kind === "undo" || (entry.kind === "changes" && (this.several || entry.body.items.length > 1))) {
      this.load(this.items[this.active]?.item, false); // what was done is what is said
      return;
    }
    if (entry.kind !== "changes") return;
    for (const item of this.items.filter((one) => entry.body.items.includes(one.item))) {
      delete item.pending;
      item.answers = [...item.answers.filter((answer) => answer.annotator !== this.sender.name),
        { annotator: this.sender.name, class: reply.class, name: entry.name, time: new Date().toISOString() }];
      item.class = new Set(item.answers.map((answer) => answer.class)).size === 1 ? reply.class : null;
    }
    this.mark();
  }
}
