// The last answers, newest first, and how far each has got: only the server's word makes one "saved".

import { find, make, say, show } from "./dom.js";
import { thumbnail } from "./item.js";

const KEPT = 14;
const WORDS = { sending: "sending…", waiting: "not saved yet", saved: "saved ✓", undoing: "undoing…", undone: "undone",
  refused: "not accepted" };

export class Recent {
  // open(question) looks at what was answered again.
  constructor(open) {
    this.open = open;
    this.acts = []; // {token, question, name, state, element}, oldest first
  }

  add(token, question, name) {
    const thumb = make("span", { class: "thumb" }, thumbnail(question));
    const button = make("button", { type: "button", class: "again", onclick: () => this.open(question),
      "aria-label": `${name}: look at ${question.name ?? question.item} again` }, thumb, make("b", { dir: "auto" }, name));
    const element = make("li", {}, button, make("i"));
    const act = { token, question, name, element };
    this.acts.push(act);
    find("recent").prepend(element);
    show(find("recent-box"), true);
    while (this.acts.length > KEPT) this.acts.shift().element.remove();
    this.set(act, "sending");
    find("recent").scrollLeft = 0;
    return act;
  }

  set(act, state) {
    act.state = state;
    act.element.className = state;
    say(act.element.querySelector("i"), WORDS[state]);
  }

  // The newest act that still stands.
  standing() {
    return this.acts.findLast((act) => !["undone", "undoing", "refused"].includes(act.state));
  }

  byToken(token) {
    return this.acts.find((act) => act.token === token);
  }

  saved(same) {
    return this.acts.findLast((act) => act.state === "saved" && same(act));
  }

  // While the server is gone every unacknowledged act says so.
  gone(lost) {
    for (const act of this.acts) {
      if (lost && act.state === "sending") this.set(act, "waiting");
      if (!lost && act.state === "waiting") this.set(act, "sending");
    }
  }
}
