// Between the page and the server: acts go out, the state comes in, and what is not saved is said.

import { find, plural, say, show } from "./dom.js";
import { Outbox } from "./outbox.js";
import * as server from "./server.js";

const POLL = 2000, POLL_TRAINING = 700, SOON = 250; // ms between looks at the server's state

const identity = (state) => state.id ?? `${state.store}|${state.data}`;

export class Sender {
  // heard(state, before) is told of every state that came.
  constructor(state, name, heard) {
    this.project = identity(state);
    this.name = name;
    this.state = state;
    this.heard = heard;
    this.refusal = null; // the last sentence of refusal, until the person has closed it
    this.outbox = new Outbox(this.project, (entry) => this.deliver(entry));
    this.outbox.addEventListener("change", () => this.show());
    this.outbox.addEventListener("gone", () => this.show());
    this.outbox.addEventListener("saved", () => this.soon());
    find("try-now").addEventListener("click", () => this.now());
    find("dismiss").addEventListener("click", () => { this.refusal = null; this.show(); });
    document.addEventListener("visibilitychange", () => document.hidden || this.look());
    addEventListener("beforeunload", (event) => {
      if (!this.outbox.kept && this.outbox.entries.size) event.preventDefault();
    });
  }

  begin() {
    this.hear(this.state, null);
    this.outbox.pump();
    this.poll();
  }

  get gone() {
    return this.outbox.gone;
  }

  put(kind, what, extra) {
    return this.outbox.put(kind, { annotator: this.name, ...what }, extra);
  }

  // After a silence it may be another project that answers at this address: it must not get these acts.
  async deliver({ kind, body, token }) {
    if (this.gone !== null) this.check(await server.state(this.name));
    return server.post(kind, { ...body, token });
  }

  check(state) {
    if (identity(state) === this.project) return state;
    throw { gone: true, message: `Another project (${state.project}) is open at this address now.` };
  }

  hear(state, before) {
    this.state = state;
    this.heard(state, before);
    this.show();
  }

  async look() {
    try {
      this.hear(this.check(await server.state(this.name)), this.state);
    } catch (error) {
      this.lost(error);
      return;
    }
    // It answers questions; whether it can write is known when an act has gone through.
    if (this.outbox.waiting().length) this.outbox.now();
    else this.outbox.reconnected();
  }

  // Something other than an act got no reply.
  lost(error) {
    if (error.refused) this.refuse(error.refused);
    else if (error.gone) this.outbox.lost(error);
    else throw error;
  }

  refuse(sentence) {
    this.refusal = sentence;
    this.show();
  }

  now() {
    this.outbox.now();
    return this.look();
  }

  soon() {
    clearTimeout(this.looking);
    this.looking = setTimeout(() => this.look(), SOON);
  }

  async poll() {
    if (!document.hidden) await this.look();
    setTimeout(() => this.poll(), this.state.model.training || this.state.model.preparing ? POLL_TRAINING : POLL);
  }

  show() {
    const left = new Set([...this.outbox.waiting(), ...this.outbox.stored()].map((entry) => entry.token)).size;
    const line = find("saving");
    line.dataset.state = this.gone !== null ? "waiting" : left ? "sending" : "saved";
    if (this.gone !== null) say(line, left ? `${left} not saved yet` : "no connection");
    else say(line, left ? "saving…" : "all saved");
    this.trouble(left);
  }

  trouble(left) {
    const failed = this.state.model.error && `The last training failed: ${this.state.model.error}`;
    let words = this.refusal ?? this.state.store_trouble ?? (failed || "");
    if (this.gone !== null) {
      const where = this.outbox.kept ? "kept in this browser" : "kept in this page alone (do not close it)";
      const what = left ? `${plural(left, "action")} of yours ${left === 1 ? "is" : "are"} ${where} and sent when it is back; you can go on.` : "Trying again.";
      words = `${this.gone} ${what}`;
    }
    say(find("trouble-words"), words);
    show(find("trouble"), Boolean(words));
    show(find("try-now"), this.gone !== null);
    show(find("dismiss"), this.gone === null && this.refusal !== null);
  }
}
