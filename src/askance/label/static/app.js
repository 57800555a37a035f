// Where the page starts: who answers, what the keys and buttons do, and the parts put together.

import { Browse } from "./browse.js";
import { Choices } from "./choices.js";
import { announce, Questions } from "./questions.js";
import { ClassesDialog, guidance } from "./classes.js";
import { annotator, askName, setUpDialogs, shortcuts } from "./dialogs.js";
import { find, say, show } from "./dom.js";
import { setUpGoal } from "./goal.js";
import { meaning, scrolled } from "./keys.js";
import { panel, readNews } from "./panel.js";
import { Sender } from "./send.js";
import * as server from "./server.js";
import { setUpTraining } from "./training.js";
import { setUpMistakes } from "./mistakes.js";
import { Zoom } from "./zoom.js";

const BLINK = 120; // ms: a second click this soon is the first one's echo; nobody has seen the item between
const RETRY = 2000; // ms until the first page is asked for again

class Page {
  constructor(state, name) {
    this.last = 0;
    this.choices = new Choices((one) => this.clicked(() => this.view.answer(one)), (one) => this.added(one));
    this.sender = new Sender(state, name, (now, before) => this.hear(now, before));
    this.questions = new Questions(this.sender, this.choices);
    this.browse = new Browse(this.sender, this.choices, this.questions);
    this.classes = new ClassesDialog(this.sender, () => this.view.question?.item ?? null, (classes) => this.reclassed(classes));
    this.zoom = new Zoom();
    this.commands = {
      zoom: () => this.zoom.toggle(this.view.question), browse: () => this.browse.toggle(),
      undo: () => this.questions.undo(), skip: () => this.questions.skip(), grid: () => this.questions.toggleGrid(),
      guess: () => this.questions.toggleGuess(), add: () => this.choices.open(),
      filter: () => (find("filter").hidden ? this.browse.open && find("browse-search").focus() : find("filter-input").focus()),
      classes: () => this.classes.open(), again: () => this.sender.put("again", {}),
      help: () => find("help").showModal(), who: () => this.rename(),
    };
    for (const [id, command] of Object.entries({ undo: "undo", skip: "skip", grid: "grid", guessing: "guess", add: "add",
      "help-button": "help", "zoom-button": "zoom", "view-items": "browse", "view-questions": "browse", again: "again", "edit-classes": "classes", "who-button": "who" })) {
      const echoes = ["undo", "skip"].includes(command);
      find(id).addEventListener("click", () => (echoes ? this.clicked(this.commands[command]) : this.commands[command]()));
    }
    find("stage").addEventListener("click", (event) => {
      if (event.target === this.questions.question?.image && !event.target.closest("button")) this.commands.zoom();
    });
    find("closer-item").addEventListener("click", (event) => event.target === this.browse.image && this.commands.zoom());
    for (const picture of ["stage", "closer-item"]) this.zoom.pinchable(find(picture), () => this.view.question);
    find("data-news-close").addEventListener("click", readNews);
    document.addEventListener("click", (event) => this.letGo(event));
    document.addEventListener("keydown", (event) => this.key(event));
    setUpGoal(() => this.sender.soon());
    setUpMistakes(() => this.choices.classes);
    setUpTraining(() => this.sender.soon());
    this.sender.begin();
    this.questions.fill();
    this.browse.follow();
  }

  // What the person sees, and so answers.
  get view() {
    return this.browse.open ? this.browse : this.questions;
  }

  // After a click no button keeps the focus: Space and Enter would press it again.
  letGo(event) {
    if (!event.detail || !event.target.closest(".classes button, .more button, #browse-yes")) return;
    if (event.target.closest("button") !== document.activeElement) return;
    if (this.browse.open) document.activeElement.blur();
    else find("stage").focus({ preventScroll: true });
  }

  clicked(act) {
    const now = performance.now();
    if (now - this.last > BLINK) act();
    this.last = now;
  }

  key(event) {
    const onButton = event.target instanceof HTMLElement && event.target.closest("button");
    if (event.repeat && onButton && ["Enter", " "].includes(event.key)) return event.preventDefault();
    const meant = meaning(event, this.choices.keys, shortcuts());
    const heights = onButton || !event.target.matches("body, #stage") || this.browse.open || document.querySelector("dialog[open]")
      ? null : scrolled(event);
    if (heights !== null && this.questions.scroll(heights)) return event.preventDefault();
    if (this.zoom.open && this.zoom.key(event, meant)) return event.preventDefault();
    if (this.browse.open && event.key === "Escape" && !document.querySelector("dialog[open]") && !event.target.closest("input, select")) return this.browse.toggle();
    if (!meant) return undefined;
    if (meant.move && event.target.closest(".text, .wide, #browse-form")) return undefined;
    if (meant.move) return this.view.move(meant.move) !== false && event.preventDefault();
    event.preventDefault();
    return meant.command ? this.commands[meant.command]() : this.view.answer(meant.answer);
  }

  hear(state, before) {
    panel(state, before);
    this.choices.update(state.classes);
    if (JSON.stringify(state.classes) !== JSON.stringify(before?.classes)) guidance(state.classes);
    say(find("who-button"), this.sender.name);
    find("who-button").setAttribute("aria-label", `${this.sender.name} answers. Change the name`);
    this.questions.controls();
    if (before && state.model.version > before.model.version) announce(`Retrained: model version ${state.model.version}.`);
  }

  reclassed(classes) {
    this.choices.update(classes);
    guidance(classes);
    this.sender.soon();
  }

  added(one) {
    const { classes } = this.choices;
    if (!classes.some((other) => other.id === one.id)) this.choices.update([...classes, one]);
    const key = this.choices.key(one.id);
    announce(`Class ${one.name} added${key ? `; its key is ${key}` : ""}.`);
    this.sender.soon();
  }

  async rename() {
    if ((await askName(this.sender.name)) !== this.sender.name) location.reload();
  }
}

async function reach(name) {
  for (;;) {
    try {
      const state = await server.state(name);
      show(find("trouble"), false);
      return state;
    } catch (error) {
      say(find("trouble-words"), error.message);
      show(find("trouble"), true);
      await new Promise((resolve) => { setTimeout(resolve, RETRY); });
    }
  }
}

setUpDialogs();
const first = await reach();
const name = annotator() || (await askName("", first.default_annotator));
new Page(await reach(name), name);
