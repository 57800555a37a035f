// Elements are made, never parsed: what a person or a file wrote only ever becomes text.

const SVG = "http://www.w3.org/2000/svg";

export const find = (id) => document.getElementById(id);

function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (value === true) element.setAttribute(name, "");
    else if (value !== false && value !== null && value !== undefined) element.setAttribute(name, value);
  }
  element.append(...children.filter((child) => child !== null && child !== undefined));
  return element;
}

export const make = (tag, attributes = {}, ...children) =>
  fill(document.createElement(tag), attributes, children);

export const draw = (tag, attributes = {}, ...children) =>
  fill(document.createElementNS(SVG, tag), attributes, children);

export const show = (element, visible) => { element.hidden = !visible; };

// Text is set only where it differs: a live region must not speak twice.
export function say(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

export const percent = (share, digits = 0) => `${(100 * share).toFixed(digits)}%`;

export const count = (n) => Number(n).toLocaleString("en-GB");

export const plural = (n, one, many = `${one}s`) => `${count(n)} ${n === 1 ? one : many}`;
