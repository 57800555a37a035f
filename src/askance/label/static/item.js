// One item to look at: an image, a text, or the columns of a row; large, in a grid cell, or as a thumbnail.

import { make } from "./dom.js";

const SMALL = 96; // pixels a side up to which an image is enlarged square by square
const GLANCE = 400; // characters of a text where there is little room

// Resolves when the item can be seen at once; a broken image is said where it is shown.
export async function preload(question) {
  if (question.kind !== "image" || question.seen) return;
  const image = new Image();
  image.src = question.media;
  await image.decode().catch(() => undefined);
  question.seen = image; // held, so that the browser keeps it
}

function picture(question, alternative) {
  const image = make("img", { src: question.media, alt: alternative, decoding: "sync", draggable: "false" });
  const size = () => image.classList.toggle("tiny", Math.max(image.naturalWidth, image.naturalHeight) <= SMALL);
  image.addEventListener("load", size);
  image.addEventListener("error", () =>
    image.replaceWith(make("p", { class: "empty" }, "This image cannot be shown. Skip it to go on.")));
  if (image.complete && image.naturalWidth) size();
  return image;
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

export function large(question) {
  if (question.kind === "image") return picture(question, `The image to answer, ${question.item}`);
  if (question.kind === "text") return make("p", { class: "text", dir: "auto", tabindex: "0" }, question.text);
  if (!question.text) return unseen(question);
  return make("div", { class: "wide", tabindex: "0", role: "group", "aria-label": "Columns of this item" },
    table(question.text));
}

export function small(question) {
  if (question.kind === "image") return picture(question, "");
  return make("p", { class: "text", dir: "auto" }, (question.text || question.item).slice(0, GLANCE));
}

// The item in words, for those who hear the page.
export function spoken(question) {
  if (question.kind === "image") return `image ${question.item}`;
  return (question.text || question.item).slice(0, GLANCE);
}
