// The last answers, newest first, and how far each has got: only the server's word makes one "saved".

import { find, make, say, show } from "./dom.js";
import { thumbnail } from "./item.js";

const KEPT = 14;
const WORDS = { sending: "sending…", waiting: "not saved yet", saved: "saved ✓", undoing: "undoing…", undone: "undone",
  refused: "not accepted" };

export class Recent {
  constructor() {
    this.acts = []; // {token, question, name, state, element}, oldest first
  }

  add(token, question, name) {
    const thumb = make("div", { class: "thumb" }, thumbnail(question));
    const element = make("li", {}, thumb, make("b", { dir: "auto" }, name), make("i"));
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

  saved(id) {
    return this.acts.findLast((act) => act.question.id === id && act.state === "saved");
  }

  // While the server is gone every unacknowledged act says so.
  gone(lost) {
    for (const act of this.acts) {
      if (lost && act.state === "sending") this.set(act, "waiting");
      if (!lost && act.state === "waiting") this.set(act, "sending");
    }
  }
}
