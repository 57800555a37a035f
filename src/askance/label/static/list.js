// How items look in the list of all items: cells, and one item closer.

import { find, make, percent, show } from "./dom.js";

const GLANCE = 300; // characters of a text in a cell

export function picture(item, size) {
  return make("img", { src: `${item.media}?size=${size}`, alt: "", draggable: "false", loading: "lazy" });
}

const words = (item) => item.text?.trim() || item.name || item.item;

function said(item) {
  if (item.pending) return `${item.pending}…`;
  const names = [...new Set(item.answers.map((answer) => answer.name))];
  if (names.length) return names.join(" / ");
  return item.skipped.length ? "skipped" : "";
}

function guessed(item) {
  if (!item.guess) return null;
  const wrong = item.class !== null && item.class !== item.guess.class;
  return make("span", { class: wrong ? "says other" : "says" }, `model: ${item.guess.name} ${percent(item.guess.confidence)}`);
}

function inside(item) {
  if (item.kind === "image") return picture(item, "small");
  return make("p", { class: "text", dir: "auto" }, words(item).slice(0, GLANCE));
}

function label(item) {
  const guess = item.guess ? `; the model says ${item.guess.name}, ${percent(item.guess.confidence)}` : "";
  const what = item.kind === "image" ? item.name ?? item.item : words(item).slice(0, 120);
  return `${what}: ${said(item) || "no answer"}${guess}`;
}

export function cell(item, click) {
  return make("button", { type: "button", class: "cell", "data-item": item.item, onclick: click }, inside(item),
    make("span", { class: "tag" }, said(item)), item.kind === "image" ? make("span", { class: "file" }, item.name ?? item.item) : null,
    guessed(item));
}

// What changed of a cell, without a new picture.
export function refresh(button, item, active, selected, several) {
  button.querySelector(".tag").textContent = said(item);
  button.classList.toggle("picked", selected);
  button.classList.toggle("out", several && !selected);
  button.setAttribute("aria-pressed", String(selected));
  button.setAttribute("aria-current", String(active));
  button.tabIndex = active ? 0 : -1;
  button.setAttribute("aria-label", label(item));
}

const row = (name, value) => [make("dt", {}, name), make("dd", { dir: "auto" }, value)];

const moment = (time) => new Date(time).toLocaleString("en-GB", { dateStyle: "medium", timeStyle: "short" });

const done = { answer: "said", skip: "skipped it", undo: "took that back", asked: "was asked" };

function history(rows) {
  return rows.map((one) => make("li", {}, `${moment(one.time)}: ${one.annotator} ${done[one.kind]}${one.name ? ` ${one.name}` : ""}`));
}

// One item closer; `whole` is what the server says of it alone, once that is there.
export function closer(item, whole) {
  show(find("closer"), Boolean(item));
  if (!item) return null;
  const image = item.kind === "image" ? make("img", { src: item.media, alt: item.name ?? item.item, draggable: "false" }) : null;
  const text = make("div", { class: "text", dir: "auto", tabindex: "0", role: "group", "aria-label": "The item" }, whole?.text ?? words(item));
  find("closer-item").replaceChildren(image ?? text);
  const facts = [row("name", item.name ?? item.item), ...item.columns.map(({ name, value }) => row(name, value)),
    ...item.answers.map((answer) => row(answer.annotator, answer.name))];
  if (item.skipped.length) facts.push(row("skipped by", item.skipped.join(", ")));
  if (item.guess) facts.push(row("model", `${item.guess.name}, ${percent(item.guess.confidence)} sure`));
  if (item.held_out) facts.push(row("held out", "measures the model: change an answer only where it was a mistake"));
  find("closer-facts").replaceChildren(...facts.flat());
  find("closer-history").replaceChildren(...history(whole?.history ?? []));
  show(find("closer-past"), Boolean(whole?.history.length));
  return image;
}
