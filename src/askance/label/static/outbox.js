// What the person did, until the server has it on disk: written to this browser first, sent in order,
// forgotten only when acknowledged. Each entry has a token, so that sending it twice counts once.

const ADOPT_AFTER = 3000; // ms: another tab's entry this old may be one that was closed
const FIRST_WAIT = 400, LONGEST_WAIT = 5000; // ms between attempts while the server is gone

export function token() {
  const bytes = crypto.getRandomValues(new Uint8Array(16)); // randomUUID is not there on plain http
  return [...bytes].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}

// The same over a reload of this tab; a copied tab has it too, which does no harm.
function thisTab() {
  try {
    const tab = sessionStorage.getItem("askance/tab") ?? token();
    sessionStorage.setItem("askance/tab", tab);
    return tab;
  } catch {
    return token();
  }
}

export class Outbox extends EventTarget {
  // send: entry → promise of the acknowledgement; it throws {gone: true} or {refused: sentence}.
  constructor(project, send) {
    super();
    this.prefix = `askance/${project}/out/`;
    this.send = send;
    this.tab = thisTab();
    this.entries = new Map(); // token → entry, in the order given
    this.last = 0;
    this.gone = null; // why the server could not be reached, once it could not
    this.kept = true; // whether this browser keeps entries over a reload
    this.busy = false;
    this.wait = FIRST_WAIT;
    addEventListener("online", () => this.now());
    addEventListener("storage", (event) => event.key?.startsWith(this.prefix) && this.emit("change"));
  }

  put(kind, body, extra = {}) {
    this.last = Math.max(this.last + 1, Date.now() * 1000);
    const entry = { kind, token: token(), tab: this.tab, order: this.last, body, ...extra };
    this.entries.set(entry.token, entry);
    try {
      localStorage.setItem(this.prefix + entry.token, JSON.stringify(entry));
    } catch {
      this.kept = false; // full or forbidden: still sent, and the page says what is at stake
    }
    this.emit("change", entry);
    this.pump();
    return entry;
  }

  // Own entries, of before a reload too, and those a closed tab left behind; oldest first.
  waiting() {
    const all = new Map(this.entries);
    for (const entry of this.stored()) {
      const ours = entry.tab === this.tab || Date.now() - entry.order / 1000 > ADOPT_AFTER;
      if (ours && !all.has(entry.token)) all.set(entry.token, entry);
    }
    return [...all.values()].sort((a, b) => a.order - b.order);
  }

  stored() {
    const entries = [];
    try {
      for (let i = 0; i < localStorage.length; i += 1) {
        const key = localStorage.key(i);
        if (key.startsWith(this.prefix)) entries.push(JSON.parse(localStorage.getItem(key)));
      }
    } catch {
      this.kept = false;
    }
    return entries.filter((entry) => entry && entry.token);
  }

  now() {
    clearTimeout(this.timer);
    this.wait = FIRST_WAIT;
    return this.pump();
  }

  async pump() {
    if (this.busy) return;
    this.busy = true;
    clearTimeout(this.timer);
    try {
      for (let entry; (entry = this.waiting()[0]); ) {
        let reply;
        try {
          reply = await this.send(entry);
        } catch (error) {
          if (!error.refused) {
            this.lost(error);
            return;
          }
          this.forget(entry);
          this.emit("refused", entry, error.refused);
          continue;
        }
        this.forget(entry);
        this.reconnected();
        this.emit("saved", entry, reply);
      }
    } finally {
      this.busy = false;
      this.emit("change");
    }
  }

  lost(error) {
    this.gone = String(error.message || error);
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.pump(), this.wait);
    this.wait = Math.min(2 * this.wait, LONGEST_WAIT);
    this.emit("gone");
  }

  reconnected() {
    this.wait = FIRST_WAIT;
    if (this.gone === null) return;
    this.gone = null;
    this.emit("back");
  }

  forget(entry) {
    this.entries.delete(entry.token);
    try {
      localStorage.removeItem(this.prefix + entry.token);
    } catch {
      this.kept = false;
    }
  }

  emit(what, entry = null, reply = null) {
    this.dispatchEvent(new CustomEvent(what, { detail: { entry, reply } }));
  }
}
