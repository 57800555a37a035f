// What lies before the person: a sheet of one question or twelve, the one asked now, and what a key does to it.
// A slot is {question, act}; act is null until the question is answered or skipped.

import { find, plural, say } from "./dom.js";
import { Prefetch } from "./prefetch.js";
import { preload, seen, spoken } from "./item.js";
import { Recent } from "./recent.js";
import { recall, remember } from "./dialogs.js";
import * as stage from "./stage.js";

const SHEET = 12;
const AGAIN = 900; // ms until more questions are asked for, where there were none

export const announce = (words) => say(find("live"), words);

export class Questions {
  constructor(sender, choices) {
    this.sender = sender;
    this.choices = choices;
    this.recent = new Recent(({ item }) => { location.hash = `#items?order=latest&show=all&at=${encodeURIComponent(item)}`; });
    this.visible = true;
    this.prefetch = new Prefetch(sender.name, sender.outbox);
    this.slots = [];
    this.active = 0;
    this.grid = recall("askance/grid") === "on";
    this.guess = recall("askance/guess") === "on";
    this.ready = false; // whether what is asked can be seen, and so be answered
    const { outbox } = sender;
    outbox.addEventListener("saved", ({ detail }) => this.saved(detail.entry, detail.reply));
    outbox.addEventListener("refused", ({ detail }) => this.refused(detail.entry, detail.reply));
    outbox.addEventListener("gone", () => this.recent.gone(true));
    outbox.addEventListener("back", () => this.back());
    addEventListener("storage", (event) => this.elsewhere(event));
  }

  get question() {
    return this.slots[this.active]?.question ?? null;
  }

  get size() {
    return this.grid ? SHEET : 1;
  }

  // ---- acts

  answer(one) {
    if (this.act("answers", { class: one.id }, one.name)) this.choices.flash(one.id);
  }

  skip() {
    this.act("skip", {}, "skipped");
  }

  act(kind, what, name) {
    const slot = this.slots[this.active];
    if (!this.ready || !slot || slot.act) return false;
    if (slot.question.broken && kind === "answers") {
      announce("This image cannot be shown, so it cannot be answered. Skip it.");
      return false;
    }
    slot.act = { name };
    const { token } = this.sender.put(kind, { question: slot.question.id, ...what }, { name });
    this.recent.add(token, slot.question, name);
    if (this.sender.gone !== null) this.recent.gone(true);
    this.next();
    return true;
  }

  get undoable() {
    return Boolean(this.recent.standing() || this.sender.state.mine?.can_undo);
  }

  // The page's last act is taken back at once; whether it was the person's last, the server knows.
  undo() {
    if (!this.undoable) return announce("Nothing to undo.");
    const act = this.recent.standing();
    if (act) {
      this.recent.set(act, "undoing");
      if (!act.changed) this.putBack(act.question);
    }
    return this.sender.put("undo", {}, { of: act?.token });
  }

  // Whether the questions are what the person sees.
  shown(visible) {
    this.visible = visible;
    if (visible) this.mark();
  }

  // Items were answered in the list of all items: nothing of them is asked here any more.
  changed(token, items, name) {
    const [first] = items;
    const many = { item: first.item, kind: "text", text: plural(items.length, "item"), name: plural(items.length, "item") };
    this.recent.add(token, items.length > 1 ? many : { ...first, image: null }, name).changed = true;
    if (this.sender.gone !== null) this.recent.gone(true);
    this.withdraw(items.map((item) => item.item));
  }

  withdraw(items) {
    for (const { id, item } of [...this.prefetch.list, ...this.slots.map((slot) => slot.question)]) {
      if (items.includes(item)) this.prefetch.settle(id);
    }
    this.prefetch.list = this.prefetch.list.filter(({ item }) => !items.includes(item));
    for (const slot of this.slots) if (!slot.act && items.includes(slot.question.item)) slot.act = { name: "answered in the list" };
    if (this.slots[this.active]?.act) this.next();
  }

  putBack(question) {
    this.prefetch.drop(question.id);
    const place = this.slots.findIndex((slot) => slot.question.id === question.id);
    if (place < 0) {
      if (!this.grid) this.clear();
      this.prefetch.shown.add(question.id);
      this.slots.unshift({ question, act: null });
    } else this.slots[place].act = null;
    this.active = Math.max(place, 0);
    if (this.grid && place >= 0) this.mark();
    else this.render();
  }

  // ---- what is shown

  next() {
    const free = (slot) => slot.act === null;
    const later = this.slots.findIndex((slot, place) => place > this.active && free(slot));
    const place = later >= 0 ? later : this.slots.findIndex(free);
    if (place < 0) return this.deal();
    this.active = place;
    return this.mark();
  }

  // Off the stage; what was not answered goes back on top.
  clear() {
    const slots = this.slots.splice(0);
    for (const slot of slots) this.prefetch.shown.delete(slot.question.id);
    this.prefetch.giveBack(slots.filter((slot) => !slot.act).map((slot) => slot.question));
  }

  deal() {
    this.clear();
    this.slots = this.prefetch.take(this.size).map((question) => ({ question, act: null }));
    this.active = 0;
    this.render();
    this.fill();
  }

  // Fetch ahead; where nothing is shown, show what came.
  async fill() {
    try {
      await this.prefetch.refill(this.size);
    } catch (error) {
      this.sender.lost(error);
    }
    if (!this.slots.length && this.prefetch.list.length) return this.deal();
    if (!this.slots.length) this.nothing();
    clearTimeout(this.filling);
    if (this.prefetch.list.length < this.size) this.filling = setTimeout(() => this.fill(), AGAIN);
    return undefined;
  }

  async render() {
    if (!this.question) return this.nothing();
    const slots = [...this.slots];
    if (!slots.every(({ question }) => seen(question))) {
      this.enable(false);
      find("stage").setAttribute("aria-busy", "true");
      try {
        await Promise.all(slots.map(({ question }) => preload(question)));
      } catch (error) {
        this.sender.lost(error);
        return this.renderSoon();
      }
      if (slots.some((slot, place) => slot !== this.slots[place])) return undefined; // overtaken
    }
    find("stage").removeAttribute("aria-busy");
    if (this.grid) stage.sheet(this.slots, (place) => this.pick(place));
    else stage.one(this.question);
    this.enable(true);
    return this.mark();
  }

  // The server did not answer: the picture is fetched again.
  renderSoon() {
    clearTimeout(this.again);
    this.again = setTimeout(() => this.question && this.render(), AGAIN);
  }

  mark() {
    if (!this.visible) return;
    this.choices.enable(this.ready && !this.question?.broken);
    if (this.grid) stage.mark(this.slots, this.active);
    stage.about(this.question, this.guess);
    this.choices.guessed(this.guess ? this.question?.guess?.class : null);
    this.controls();
  }

  nothing() {
    this.enable(false);
    const { finished, message } = this.prefetch;
    if (this.sender.gone !== null) stage.empty("The server does not answer.", "Questions go on when it is back.");
    else if (finished) stage.empty("Nothing left to answer.", message ?? "Every item has been answered or skipped.");
    else stage.empty("One moment.", message ?? "The next questions are being chosen.");
    this.mark();
  }

  pick(place) {
    if (!this.slots[place] || this.slots[place].act) return;
    this.active = place;
    this.mark();
  }

  scroll(heights) {
    return !this.grid && stage.scroll(heights);
  }

  move([right, down]) {
    if (this.grid) this.pick(this.active + right + down * stage.columns());
    return this.grid;
  }

  enable(ready) {
    this.ready = ready;
    if (this.visible) this.choices.enable(ready);
    this.controls();
  }

  controls() {
    find("skip").setAttribute("aria-disabled", String(!this.ready));
    find("undo").setAttribute("aria-disabled", String(!this.undoable));
    find("grid").setAttribute("aria-pressed", String(this.grid));
    find("guessing").setAttribute("aria-pressed", String(this.guess));
  }

  toggleGrid() {
    this.clear();
    this.grid = !this.grid;
    remember("askance/grid", this.grid ? "on" : "off");
    this.enable(false);
    this.fill();
    announce(this.grid ? "A grid of items." : "One item at a time.");
  }

  toggleGuess() {
    this.guess = !this.guess;
    remember("askance/guess", this.guess ? "on" : "off");
    this.mark();
    announce(this.guess ? `Guess shown. ${find("guess").textContent}` : "Guess hidden.");
  }

  // ---- what the server said

  saved(entry, reply) {
    if (entry.kind === "undo") return this.undone(entry, reply);
    if (entry.kind === "again") return this.again(reply);
    if (entry.kind === "changes") return this.kept(entry, reply);
    this.prefetch.settle(entry.body.question);
    const act = this.recent.byToken(entry.token);
    if (act && act.state !== "undoing") this.recent.set(act, "saved");
    const next = this.question ? ` Next: ${spoken(this.question)}` : "";
    return announce(`${entry.kind === "skip" ? "Skipped" : `Saved: ${entry.name}`}.${next}`);
  }

  kept(entry, { questions }) {
    const act = this.recent.byToken(entry.token);
    if (act) act.questions = questions;
    if (act && act.state !== "undoing") this.recent.set(act, "saved");
    this.fill();
    announce(`Saved: ${plural(questions.length, "item")} ${questions.length === 1 ? "is" : "are"} ${entry.name} now.`);
  }

  // The server asks those first; what was fetched before is fetched again.
  async again({ n }) {
    await this.prefetch.asking?.catch(() => undefined);
    this.clear();
    this.prefetch.list = [];
    this.fill();
    announce(`${plural(n, "skipped item")} ${n === 1 ? "is" : "are"} asked again.`);
  }

  undone(entry, { question, items }) {
    const meant = this.recent.byToken(entry.of);
    const same = (act) => (act.changed ? act.questions?.includes(question.id) : act.question.id === question.id);
    const act = meant && same(meant) ? meant : this.recent.saved(same);
    if (meant && meant !== act) this.recent.set(meant, "saved");
    if (act) this.recent.set(act, "undone");
    if (question.reason === "outside") return announce(`Undone: ${act?.name ?? "your last answer"}, ${plural(items.length, "item")}.`);
    const here = [...this.slots.map((slot) => slot.question), ...this.prefetch.list].some((one) => one.id === question.id);
    if (!here && !this.prefetch.pending().has(question.id)) this.putBack(question);
    announce(`Undone: ${act?.name ?? "your last answer"}. ${spoken(question)}`);
  }

  refused(entry, sentence) {
    const undo = entry.kind === "undo";
    const act = this.recent.byToken(undo ? entry.of : entry.token);
    if (act) this.recent.set(act, undo ? "saved" : "refused");
    if (entry.body.question !== undefined) this.prefetch.settle(entry.body.question);
    this.sender.refuse(`Not accepted (${undo ? "undo" : entry.name}): ${sentence}`);
    this.fill();
  }

  back() {
    this.recent.gone(false);
    announce("The server is back.");
    this.fill();
  }

  // Another tab of this browser acted: what it answered is not asked here again.
  elsewhere(event) {
    if (!event.key?.startsWith(this.sender.outbox.prefix)) return;
    const { body } = JSON.parse(event.newValue ?? event.oldValue);
    if (body.annotator !== this.sender.name) return undefined;
    if (body.items) return this.withdraw(body.items);
    if (body.question === undefined) return undefined;
    // Both when it is given and when it is saved: a list of questions under way may still have it.
    this.prefetch.settle(body.question);
    if (!event.newValue) return;
    const slot = this.slots.find((one) => one.question.id === body.question);
    if (!slot) return this.prefetch.drop(body.question);
    if (slot.act) return undefined;
    slot.act = { name: "answered in another tab" };
    return slot === this.slots[this.active] ? this.next() : this.mark();
  }
}
