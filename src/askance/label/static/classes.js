// The classes as people see them: names, a line of guidance, an example, their order and keys.

import { find, make, plural, say, show } from "./dom.js";
import { token } from "./outbox.js";
import * as server from "./server.js";

const KEYS = [..."1234567890cdfijklmnopqrtvwxy"]; // those of `askance.label.keys`

export class ClassesDialog {
  // shown() is the item that is looked at; heard() is told of every edit.
  constructor(sender, shown, heard) {
    Object.assign(this, { sender, shown, heard });
    this.dialog = find("classes-dialog");
  }

  open() {
    say(find("classes-wrong"), "");
    this.draw(this.sender.state.classes, this.sender.state.deleted_classes);
    this.dialog.showModal();
  }

  draw(classes, deleted) {
    this.classes = classes;
    this.deleted = deleted;
    const example = this.shown();
    const at = this.typing();
    find("classes-rows").replaceChildren(...classes.map((one, place) => this.row(one, place, example)));
    const again = at && find("classes-rows").querySelector(`[data-class="${at.id}"]`)?.querySelectorAll("input, select, button")[at.place];
    if (again && at.value !== null) again.value = at.value;
    again?.focus();
    find("classes-gone").replaceChildren(...deleted.map((one) => make("li", {},
      make("button", { type: "button", onclick: () => this.edit(one, { deleted: false }) }, `Restore ${one.name}`))));
    show(find("classes-gone-box"), deleted.length > 0);
  }

  // The control that has the focus, and what was typed there and not sent yet.
  typing() {
    const here = document.activeElement, row = here.closest?.("#classes-rows li");
    if (!row) return null;
    const place = [...row.querySelectorAll("input, select, button")].indexOf(here);
    const value = here.matches("input") && here.value !== here.defaultValue ? here.value : null;
    return { id: row.dataset.class, place, value };
  }

  row(one, place, example) {
    const name = make("input", { value: one.name, maxlength: "60", "aria-label": `Name of ${one.name}`,
      onchange: () => this.edit(one, { name: name.value }) });
    const words = make("input", { value: one.description, maxlength: "300", placeholder: "what belongs here, in a line",
      "aria-label": `Guidance for ${one.name}`, onchange: () => this.edit(one, { description: words.value }) });
    const key = make("select", { "aria-label": `Key of ${one.name}`, onchange: () => this.edit(one, { key: key.value || null }) },
      ...(one.chosen ? [make("option", { value: one.key }, one.key), make("option", { value: "" }, "any")]
        : [make("option", { value: "" }, one.key ?? "none")]),
      ...KEYS.filter((each) => each !== one.key).map((each) => make("option", { value: each }, each)));
    const button = (text, label, act, possible = true) =>
      make("button", { type: "button", "aria-label": label, "aria-disabled": String(!possible), onclick: () => possible && act() }, text);
    return make("li", { "data-class": one.id }, key, name, words,
      make("div", { class: "class-acts" },
        button("↑", `${one.name} further up`, () => this.move(place, -1), place > 0),
        button("↓", `${one.name} further down`, () => this.move(place, 1), place < this.classes.length - 1),
        example ? button("Use this item as the example", `Use this item as the example of ${one.name}`, () => this.edit(one, { example })) : null,
        one.example ? button("No example", `No example for ${one.name}`, () => this.edit(one, { example: null })) : null,
        button("Delete", `Delete ${one.name}`, () => this.edit(one, { deleted: true }))),
      one.example ? make("p", { class: "note" }, `Example: ${one.example}`) : null);
  }

  // Between its new neighbours.
  move(place, step) {
    const rest = this.classes.filter((_, other) => other !== place).map((one) => one.place);
    const at = place + step;
    const [before, after] = [rest[at - 1] ?? rest[at] - 2, rest[at] ?? rest[at - 1] + 2];
    return this.edit(this.classes[place], { place: (before + after) / 2 }, step > 0 ? "down" : "up");
  }

  // One edit after the other, each of what the one before it left: an edit says all of a class.
  edit(one, change, focus = null) {
    this.last = Promise.resolve(this.last).then(() => this.send(one.id, change, focus));
    return this.last;
  }

  async send(id, change, focus) {
    const one = [...this.classes, ...this.deleted].find((each) => each.id === id);
    const { name, description, example, place } = one;
    const body = { name, description, example, place, key: one.chosen ? one.key : null, deleted: false, ...change,
      annotator: this.sender.name, token: token() };
    try {
      const reply = await server.post(`classes/${one.id}`, body);
      say(find("classes-wrong"), "");
      this.draw(reply.classes, reply.deleted_classes);
      this.heard(reply.classes);
    } catch (error) {
      say(find("classes-wrong"), error.message ?? String(error));
      this.draw(this.classes, this.deleted);
    }
    if (focus) find("classes-rows").querySelector(`[data-class="${one.id}"] [aria-label$="${focus}"]`)?.focus();
  }
}

// What the classes mean, under their buttons.
export function guidance(classes) {
  const told = classes.filter((one) => one.description || one.example);
  show(find("guidance"), told.length > 0);
  say(find("guidance-title"), `What belongs where (${plural(told.length, "class", "classes")})`);
  find("guidance-list").replaceChildren(...told.flatMap((one) => [make("dt", { dir: "auto" }, one.name),
    make("dd", { dir: "auto" }, one.description, one.example_media ? make("img", { src: `${one.example_media}?size=small`,
      loading: "lazy", alt: `An example of ${one.name}` }) : one.example_text ? make("q", {}, one.example_text.slice(0, 200)) : null)]));
}
