// What is looked at: one question large, or a sheet of them. A slot is {question, act}; act is null until answered.

import { find, make, percent, say, show } from "./dom.js";
import { about as facts, large, small } from "./item.js";

const REASONS = { first: "first questions", rule: "chosen by the model", "held-out": "held out at random",
  disagreement: "people disagree", repeat: "asked twice", outside: "answered elsewhere" };

const stage = find("stage");

function asked(question) {
  stage.dataset.question = question?.id ?? "";
  stage.dataset.item = question?.item ?? "";
}

function people(earlier) {
  const said = earlier.map((answer) => `${answer.annotator} said ${answer.name}`).join(", ");
  return `People disagree on this item: ${said}. Please look again and answer as you see it now; every answer is kept.`;
}

function guessed(question, visible) {
  if (!visible || !question) return [];
  if (question.guess) {
    return ["The model’s guess: ", make("b", {}, question.guess.name), ` (${percent(question.guess.confidence)} sure)`];
  }
  if (question.guess_withheld) return ["The guess is withheld on this question, so that it cannot lead your hand."];
  return ["No model yet, so no guess."];
}

function numbers(values) {
  const given = Object.entries(values).filter(([, value]) => value !== null);
  show(find("numbers"), given.length > 0);
  find("numbers-list").replaceChildren(...given.flatMap(([name, value]) => [make("dt", {}, name.replaceAll("_", " ")),
    make("dd", {}, Number.isInteger(value) ? String(value) : value.toPrecision(3))]));
}

export function about(question, guessVisible) {
  show(find("kind"), Boolean(question));
  say(find("kind"), question ? REASONS[question.reason] ?? question.reason : "");
  const disagree = question?.reason === "disagreement" && question.earlier.length > 0;
  say(find("why"), question?.why?.text ?? "");
  show(find("reason"), Boolean(question));
  show(find("conflict"), disagree);
  say(find("conflict"), disagree ? people(question.earlier) : "");
  find("guess").replaceChildren(...guessed(question, guessVisible));
  numbers(question?.why?.numbers ?? {});
  find("item-facts").replaceChildren(...(question ? facts(question) : []));
  show(find("item-facts"), find("item-facts").children.length > 0);
  show(find("zoom-button"), question?.kind === "image");
  find("zoom-button").setAttribute("aria-disabled", String(!question?.image));
}

export function one(question) {
  asked(question);
  const item = large(question);
  stage.replaceChildren(item);
  item.addEventListener("scroll", goesOn);
  goesOn();
}

const long = () => stage.querySelector(":scope > :is(.text, .wide)");

// Whether what is looked at goes on below, said and faded out.
function goesOn() {
  const item = long();
  const more = Boolean(item) && item.scrollTop + item.clientHeight < item.scrollHeight - 4;
  item?.classList.toggle("goes-on", more);
  find("goes-on").style.visibility = more ? "visible" : "hidden";
  show(find("goes-on"), Boolean(item) && item.scrollHeight > item.clientHeight + 4);
}

addEventListener("resize", goesOn);

// Scroll what is looked at by so many of its heights; false where all of it is seen.
export function scroll(heights) {
  const item = long();
  if (!item || item.scrollHeight <= item.clientHeight) return false;
  const top = Number.isFinite(heights) ? item.scrollTop + heights * item.clientHeight : heights > 0 ? item.scrollHeight : 0;
  item.scrollTo({ top });
  return true;
}

export function sheet(slots, pick) {
  show(find("goes-on"), false);
  const cells = slots.map(({ question }, place) => make("button", { type: "button", class: "cell", onclick: () => pick(place) },
    small(question), make("span", { class: "tag" })));
  stage.replaceChildren(make("div", { class: slots[0].question.kind === "image" ? "grid" : "grid texts" }, ...cells));
}

// Which cell is asked now, and what was said of the others; the cells themselves stay.
export function mark(slots, active) {
  asked(slots[active]?.question);
  [...stage.querySelectorAll(".cell")].slice(0, slots.length).forEach((button, place) => {
    const { act, question } = slots[place];
    const here = place === active;
    button.classList.toggle("done", act !== null);
    button.setAttribute("aria-current", String(here));
    say(button.querySelector(".tag"), act ? act.name : here ? "this one" : "");
    button.setAttribute("aria-label", `Item ${place + 1} of ${slots.length}, ${
      question.kind === "image" ? question.item : question.text?.slice(0, 120) ?? question.item}: ${
      act ? act.name : here ? "asked now" : "not answered"}`);
    if (here) button.scrollIntoView({ block: "nearest" });
  });
}

export function columns() {
  const grid = stage.querySelector(".grid");
  return grid ? getComputedStyle(grid).gridTemplateColumns.split(" ").length : 1;
}

export function empty(title, words) {
  show(find("goes-on"), false);
  asked(null);
  stage.replaceChildren(make("p", { class: "empty" }, make("b", {}, title), words));
}
