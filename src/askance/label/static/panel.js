// How it goes, in numbers and sentences: all of it from the server's state, nothing computed twice.

import { curve } from "./curve.js";
import { recall, remember } from "./dialogs.js";
import { count, find, make, percent, plural, say, show } from "./dom.js";
import { goal } from "./goal.js";
import { model } from "./training.js";

const READ = "askance/data-news"; // what was read and closed of the data's changes
const EXPORTS = { answers: "Answers", predictions: "Predictions for the rest", model: "The model" };

function progress(state) {
  say(find("answered"), `${count(state.answered)} of ${count(state.total)}`);
  const bar = find("progress");
  bar.max = Math.max(state.total, 1);
  bar.value = state.answered;
  const parts = [`${count(state.remaining)} left`];
  if (state.skipped) parts.push(`${count(state.skipped)} skipped`);
  if (state.annotators.length > 1) parts.push(`${count(state.annotators.length)} people`);
  if (state.conflicts) parts.push(`${plural(state.conflicts, "disagreement")} open`);
  say(find("left"), parts.join(" · "));
  show(find("again"), state.mine.again > 0);
  say(find("again"), `Ask the ${plural(state.mine.again, "skipped item")} again`);
  say(find("pace"), state.per_minute === null ? "–" : state.per_minute.toFixed(state.per_minute < 10 ? 1 : 0));
}

function described({ name, strategy, chosen, seconds }) {
  const took = seconds === null ? "" : ` The last training took ${seconds.toFixed(seconds < 10 ? 1 : 0)} s.`;
  say(find("model-words"), `${name}, trained from scratch each time; it asks with ${strategy}${chosen && `, ${chosen}`}.${took}`);
}

function table(points) {
  const head = make("tr", {}, ...["answers", "accuracy", "from", "to"].map((word) => make("th", { scope: "col" }, word)));
  const rows = points.map((p) => make("tr", {}, make("td", {}, count(p.answers)),
    ...[p.accuracy, p.low, p.high].map((share) => make("td", {}, percent(share, 1)))));
  return make("table", {}, make("thead", {}, head), make("tbody", {}, ...rows));
}

// An interval is rounded outwards.
const below = (share) => `${Math.floor(100 * share + 1e-9)}%`, above = (share) => `${Math.ceil(100 * share - 1e-9)}%`;

// The large number is what is known: the lower end of the interval, not 100% of 20 answers.
function accuracy(state, before) {
  const { estimate, held_out: held, sure } = state;
  say(find("accuracy"), estimate ? `at least ${below(estimate.low)}` : "not yet known");
  say(find("interval"), estimate
    ? `right on ${count(Math.round(estimate.accuracy * estimate.n))} of ${plural(estimate.n, "held-out answer")}: 95% interval ${
      below(estimate.low)} to ${above(estimate.high)}`
    : "needs a trained model and answers to held-out questions");
  show(find("sure"), sure !== null);
  show(find("mistakes-button"), state.model.version > 0);
  say(find("sure"), sure === null ? "" : `Where it was ${percent(sure.confidence)} sure or more, it was right ${
    count(sure.right)} times of ${count(sure.n)}.`);
  show(find("accuracy-short"), Boolean(estimate));
  say(find("accuracy-short"), `accuracy ${find("accuracy").textContent}`);
  const [first = "", ...rest] = state.notes;
  say(find("unbiased"), held.share > 0 ? first : "No items are held out, so the accuracy is not measured.");
  find("notes").replaceChildren(...rest.map((note) => make("p", { class: "note" }, note)));
  show(find("notes-box"), held.share > 0 && rest.length > 0);
  show(find("curve-figure"), state.curve.length > 0);
  if (state.curve.length && JSON.stringify(state.curve) !== JSON.stringify(before?.curve)) {
    find("curve").replaceChildren(curve(state.curve));
    find("curve-table").replaceChildren(table(state.curve));
  }
}

function advice({ text, stop }) {
  say(find("advice"), text);
  find("advice").classList.toggle("stop", stop);
}

function counts(list) {
  const largest = Math.max(...list.map((one) => one.answers), 1);
  find("counts").replaceChildren(...list.map((one) => {
    const bar = make("i", { "aria-hidden": "true" });
    bar.style.width = `${(100 * one.answers) / largest}%`;
    return make("li", {}, make("span", { dir: "auto", title: one.name }, one.name), make("div", {}, bar),
      make("b", {}, count(one.answers)));
  }));
}

function exports(list) {
  const links = Object.entries(list).filter(([, formats]) => formats.length > 0).map(([what, formats]) =>
    make("li", {}, `${EXPORTS[what] ?? what}: `, ...formats.flatMap((format, i) => [i ? " · " : "",
      make("a", { href: `api/export/${what}?format=${format}`, download: true,
        "aria-label": `${EXPORTS[what] ?? what} as ${format}` }, format)])));
  find("exports").replaceChildren(...links);
}

// What became of the data is said above the question until it is closed, and stays said beside it.
function data({ text, trouble, left_out: leftOut, unreadable_text: unreadable }, agreement) {
  const lost = trouble && `The data cannot be read now, so the page goes on with it as it was: ${trouble}`;
  const news = lost || [text, leftOut, unreadable].filter(Boolean).join(" ");
  say(find("data-news-words"), news);
  show(find("data-news"), Boolean(news) && news !== recall(READ));
  const words = [];
  words.push(...[text, leftOut, unreadable].filter(Boolean));
  if (agreement.items) {
    words.push(`${plural(agreement.items, "item")} ${agreement.items === 1 ? "was" : "were"} answered by two people or more; `
      + `on ${count(agreement.agree)} they agree.`);
  }
  show(find("data-words"), words.length > 0);
  say(find("data-words"), words.join(" "));
}

export function readNews() {
  remember(READ, find("data-news-words").textContent);
  show(find("data-news"), false);
}

export function panel(state, before) {
  say(find("project"), state.project);
  say(find("what"), `${plural(state.total, state.kind === "features" ? "item" : state.kind)} · ${plural(state.classes.length, "class", "classes")}`);
  document.title = `${state.project} · askance`;
  progress(state);
  model(state.model);
  described(state.model);
  accuracy(state, before);
  advice(state.advice);
  goal(state.goal);
  if (JSON.stringify(state.counts) !== JSON.stringify(before?.counts)) counts(state.counts);
  if (JSON.stringify(state.exports) !== JSON.stringify(before?.exports)) exports(state.exports);
  data(state.changes, state.agreement);
}
