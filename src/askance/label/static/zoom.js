// One picture over the whole window, at its full resolution: wheel, pinch, drag, buttons and keys.

import { find, percent, say } from "./dom.js";

const STEP = 1.4; // times larger for each press
const MOST = 16; // times its own pixels
const MOVE = 80; // pixels for each arrow key
const ARROWS = { ArrowLeft: [1, 0], ArrowRight: [-1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] };

const middle = ([a, b]) => [(a.x + b.x) / 2, (a.y + b.y) / 2];
const apart = ([a, b]) => Math.hypot(a.x - b.x, a.y - b.y);

export class Zoom {
  constructor() {
    this.dialog = find("zoom");
    this.view = find("zoom-view");
    this.image = find("zoom-image");
    this.fingers = new Map(); // pointer id → {x, y}
    find("zoom-in").addEventListener("click", () => this.by(STEP));
    find("zoom-out").addEventListener("click", () => this.by(1 / STEP));
    find("zoom-fit").addEventListener("click", () => this.fit());
    find("zoom-one").addEventListener("click", () => this.to(1));
    find("zoom-close").addEventListener("click", () => this.dialog.close());
    this.view.addEventListener("wheel", (event) => {
      event.preventDefault();
      this.by(Math.exp(-event.deltaY / 400), [event.clientX, event.clientY]);
    }, { passive: false });
    this.view.addEventListener("pointerdown", (event) => this.down(event));
    this.view.addEventListener("pointermove", (event) => this.moved(event));
    for (const end of ["pointerup", "pointercancel"]) this.view.addEventListener(end, (event) => this.fingers.delete(event.pointerId));
    this.dialog.addEventListener("close", () => { this.image.removeAttribute("src"); this.fingers.clear(); });
    addEventListener("resize", () => this.open && this.fit());
  }

  get open() {
    return this.dialog.open;
  }

  toggle(question) {
    if (this.open) return this.dialog.close();
    return question?.image && this.show(question);
  }

  // At once what is on the page, then the file's own pixels.
  async show(question) {
    this.dialog.showModal();
    this.image.alt = `${question.name ?? question.item} at its full resolution`;
    this.place(question.image);
    this.fit();
    const whole = new Image();
    whole.src = `${question.media}?size=full`;
    try {
      await whole.decode();
    } catch {
      return say(find("zoom-words"), "The full resolution did not load.");
    }
    const asked = new URL(question.media, location).pathname;
    if (!this.open || new URL(this.image.src || location).pathname !== asked) return undefined; // closed meanwhile
    const grown = whole.naturalWidth / this.width;
    this.place(whole);
    this.scale /= grown;
    return this.draw();
  }

  place(image) {
    this.image.src = image.src;
    [this.width, this.height] = [image.naturalWidth, image.naturalHeight];
  }

  get fitting() {
    return Math.min(this.view.clientWidth / this.width, this.view.clientHeight / this.height);
  }

  fit() {
    this.scale = this.fitting;
    this.x = (this.view.clientWidth - this.width * this.scale) / 2;
    this.y = (this.view.clientHeight - this.height * this.scale) / 2;
    this.draw();
  }

  to(scale, at) {
    this.by(scale / this.scale, at);
  }

  // Larger or smaller; what is at the point stays there.
  by(times, [x, y] = [this.view.clientWidth / 2, this.view.clientHeight / 2]) {
    const before = this.scale;
    this.scale = Math.min(Math.max(before * times, Math.min(this.fitting, 1)), Math.max(MOST, this.fitting));
    this.x = x - ((x - this.x) * this.scale) / before;
    this.y = y - ((y - this.y) * this.scale) / before;
    this.draw();
  }

  draw() {
    const [wide, high] = [this.width * this.scale, this.height * this.scale];
    this.x = this.kept(this.x, wide, this.view.clientWidth);
    this.y = this.kept(this.y, high, this.view.clientHeight);
    Object.assign(this.image.style, { width: `${wide}px`, height: `${high}px`, transform: `translate(${this.x}px, ${this.y}px)` });
    this.image.classList.toggle("pixels", this.scale > 3);
    say(find("zoom-words"), `${percent(this.scale)} of ${this.width} × ${this.height}`);
  }

  // In the middle where there is room; else no edge comes inside the window.
  kept(place, length, room) {
    return length <= room ? (room - length) / 2 : Math.min(0, Math.max(place, room - length));
  }

  down(event) {
    this.view.setPointerCapture(event.pointerId);
    this.fingers.set(event.pointerId, { x: event.clientX, y: event.clientY });
  }

  moved(event) {
    const before = [...this.fingers.values()].slice(0, 2);
    if (!this.fingers.has(event.pointerId)) return;
    this.fingers.set(event.pointerId, { x: event.clientX, y: event.clientY });
    const now = [...this.fingers.values()].slice(0, 2);
    const [was, is] = now.length > 1 ? [middle(before), middle(now)] : [before[0], now[0]].map(({ x, y }) => [x, y]);
    this.x += is[0] - was[0];
    this.y += is[1] - was[1];
    if (now.length > 1) this.by(apart(now) / Math.max(apart(before), 1), is);
    else this.draw();
  }

  // Whether the key was for the picture; what answers closes it and goes on to the question.
  key(event, meant) {
    if (event.ctrlKey || event.metaKey || event.altKey) return false;
    const [right, down] = ARROWS[event.key] ?? [0, 0];
    if (right || down) [this.x, this.y] = [this.x + right * MOVE, this.y + down * MOVE];
    if (right || down) this.draw();
    else if (["+", "="].includes(event.key)) this.by(STEP);
    else if (event.key === "-") this.by(1 / STEP);
    else if (meant?.command === "zoom") this.dialog.close();
    else if (meant?.answer) {
      this.dialog.close();
      return false;
    } else return Boolean(meant);
    return true;
  }

  // Two fingers on a picture open it.
  pinchable(element, question) {
    element.addEventListener("touchstart", (event) => {
      if (event.touches.length !== 2 || !question()?.image || event.target !== question().image) return;
      event.preventDefault();
      this.show(question());
      const distance = this.spread(event.touches);
      let last = distance;
      const follow = (more) => {
        if (more.touches.length !== 2) return;
        more.preventDefault();
        const now = this.spread(more.touches);
        const [a, b] = more.touches;
        this.by(now / last, [(a.clientX + b.clientX) / 2, (a.clientY + b.clientY) / 2]);
        last = now;
      };
      const ended = () => {
        removeEventListener("touchmove", follow);
        removeEventListener("touchend", ended);
      };
      addEventListener("touchmove", follow, { passive: false });
      addEventListener("touchend", ended);
    }, { passive: false });
  }

  spread([a, b]) {
    return Math.max(1, Math.hypot(a.clientX - b.clientX, a.clientY - b.clientY));
  }
}
