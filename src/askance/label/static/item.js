// One item to look at: an image, a text, or the columns of a row; large, in a grid cell, or as a thumbnail.

import { make } from "./dom.js";
import * as server from "./server.js";

const LARGER = 24; // times a small image is enlarged at most
const THUMB = 108; // pixels of a thumbnail's longer side
const GLANCE = 400; // characters of a text where there is little room

// Resolves when the item can be seen at once. The image is fetched once and this element is the one that
// is shown: the server forbids the browser to keep a copy.
export async function preload(question) {
  if (question.kind !== "image" || question.image || question.broken) return;
  const image = make("img", { src: question.media, alt: "", draggable: "false" });
  try {
    await image.decode();
  } catch {
    question.broken = await server.refusal(question.media); // throws where the server does not answer
    return;
  }
  image.style.maxHeight = `${image.naturalHeight * LARGER}px`;
  question.image = image;
}

export const seen = (question) => question.kind !== "image" || Boolean(question.image || question.broken);

const broken = (question) => make("p", { class: "empty" }, make("b", {}, "This image cannot be shown."),
  `${question.broken} Skip it to go on.`);

function picture(question, alternative) {
  if (!question.image) return broken(question);
  question.image.alt = alternative;
  return question.image;
}

// "name: value" lines as two columns; a line without a name spans both.
function table(text) {
  const rows = text.split("\n").map((line) => {
    const at = line.indexOf(": ");
    if (at < 0) return make("tr", {}, make("td", { colspan: "2" }, line));
    return make("tr", {}, make("th", { scope: "row" }, line.slice(0, at)),
      make("td", { dir: "auto" }, line.slice(at + 2)));
  });
  return make("table", { class: "features" }, make("tbody", {}, ...rows));
}

const unseen = (question) => make("p", { class: "empty" }, make("b", {}, question.item),
  "Only its features are known; there is nothing to look at.");

const blank = (question) => question.kind === "text" && !question.text.trim();

const words = (question) => (blank(question) ? "(an empty text)" : question.text || question.item);

export function large(question) {
  if (question.kind === "image") return picture(question, `The image to answer, ${question.item}`);
  if (blank(question)) return make("p", { class: "empty" }, "This text is empty. Skip it to go on.");
  if (question.kind === "text") return make("p", { class: "text", dir: "auto", tabindex: "0" }, question.text);
  if (!question.text) return unseen(question);
  return make("div", { class: "wide", tabindex: "0", role: "group", "aria-label": "Columns of this item" },
    table(question.text));
}

const cut = (text) => (text.length > GLANCE ? `${text.slice(0, GLANCE)}…` : text);

// In a grid cell, whose label says what it is.
export function small(question) {
  if (question.kind === "image") return picture(question, "");
  return make("p", { class: "text", dir: "auto" }, cut(words(question)));
}

// Among the last answers: a copy, since the image itself may be asked about again.
export function thumbnail(question) {
  if (question.kind !== "image") return make("p", { dir: "auto" }, words(question).slice(0, 120));
  if (!question.image) return make("p", {}, question.item);
  const { naturalWidth: wide, naturalHeight: high } = question.image;
  const scale = THUMB / Math.max(wide, high);
  const copy = make("canvas", { width: Math.max(1, Math.round(wide * scale)), height: Math.max(1, Math.round(high * scale)) });
  const pen = copy.getContext("2d");
  pen.drawImage(question.image, 0, 0, copy.width, copy.height);
  return copy;
}

// What it is called, and the other columns of its row.
export function about(question) {
  const rows = [["", question.name ?? question.item], ...question.columns.map(({ name, value }) => [name, value])];
  if (question.kind === "features" || (question.kind === "text" && /^\d+$/.test(rows[0][1]))) rows.shift();
  return rows.flatMap(([name, value]) => [make("dt", {}, name || (question.kind === "image" ? "file" : "row")),
    make("dd", { dir: "auto" }, value)]);
}

// The item in words, for those who hear the page.
export function spoken(question) {
  if (question.kind === "image") return `image ${question.item}`;
  return words(question).slice(0, GLANCE);
}
