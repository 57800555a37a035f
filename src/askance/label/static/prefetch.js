// The questions this page holds: fetched ahead, their images loaded, so that the next one is there at once.

import { preload } from "./item.js";
import * as server from "./server.js";

const AHEAD = 5; // held beyond those shown
const MOST = 48; // the server hands out no more at a time

export class Prefetch {
  constructor(annotator, outbox) {
    this.annotator = annotator;
    this.outbox = outbox;
    this.list = [];
    this.shown = new Set(); // ids on the stage
    this.settled = new Map(); // id → when its act was acknowledged
    this.message = null;
    this.finished = this.waiting = false;
    this.asking = null;
  }

  pending() {
    const held = [...this.outbox.waiting(), ...this.outbox.stored()];
    return new Set(held.map((entry) => entry.body.question).filter((id) => id !== undefined));
  }

  // Ask for more where fewer than `size` and some are left. One request at a time.
  async refill(size) {
    await this.asking?.catch(() => undefined); // whoever asked hears of a failure
    if (this.list.length >= size + AHEAD - 1) return;
    this.asking ??= this.ask(size).finally(() => { this.asking = null; });
    await this.asking;
  }

  async ask(size) {
    const began = performance.now();
    const wanted = this.shown.size + this.pending().size + size + AHEAD;
    const reply = await server.questions(this.annotator, Math.min(wanted, MOST));
    const pending = this.pending();
    const changing = new Set(this.outbox.waiting().flatMap((entry) => entry.body.items ?? []));
    const listed = new Set(this.list.map((question) => question.id));
    for (const question of reply.questions) {
      const acted = pending.has(question.id) || (this.settled.get(question.id) ?? -1) >= began;
      if (!acted && !changing.has(question.item) && !listed.has(question.id) && !this.shown.has(question.id)) this.list.push(question);
    }
    this.finished = reply.finished;
    this.waiting = reply.waiting;
    this.message = reply.message;
    await Promise.all(this.list.slice(0, size + AHEAD).map(preload));
  }

  // The next n, which are then shown.
  take(n) {
    const taken = this.list.splice(0, n);
    for (const question of taken) this.shown.add(question.id);
    return taken;
  }

  giveBack(questions) {
    for (const question of questions) this.shown.delete(question.id);
    this.list.unshift(...questions);
  }

  drop(id) {
    this.list = this.list.filter((question) => question.id !== id);
    this.shown.delete(id);
  }

  settle(id) {
    this.settled.set(id, performance.now());
  }
}
