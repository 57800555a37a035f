// What the model gets wrong on held-out answers: confusions, each class, how sure it is, how people agree.

import { count, find, make, percent, plural, say, show } from "./dom.js";
import * as server from "./server.js";

const items = (filter) => `#items?${new URLSearchParams(filter)}`;

function table(head, rows) {
  return make("table", {}, make("thead", {}, make("tr", {}, ...head.map((word) => make("th", { scope: "col" }, word)))),
    make("tbody", {}, ...rows.map(([first, ...rest]) => make("tr", {}, make("th", { scope: "row", dir: "auto", title: first }, first),
      ...rest.map((value) => make("td", {}, value))))));
}

// Only classes that occur have a row and a column.
function confusion(cells, classes) {
  const there = classes.filter((one) => cells.some((cell) => [cell.said, cell.guessed].includes(one.id)));
  const at = new Map(cells.map((cell) => [`${cell.said} ${cell.guessed}`, cell.n]));
  const head = make("tr", {}, make("th", { scope: "col" }, "people say"), ...there.map((one) => make("th", { scope: "col", dir: "auto", title: one.name }, one.name)));
  const rows = there.map((said) => make("tr", {}, make("th", { scope: "row", dir: "auto", title: said.name }, said.name), ...there.map((guessed) => {
    const n = at.get(`${said.id} ${guessed.id}`);
    if (!n) return make("td", {}, "");
    const link = make("a", { href: items({ show: "held-out", class: said.id, guess: guessed.id }),
      "aria-label": `${plural(n, "item")} of ${said.name}, guessed ${guessed.name}` }, count(n));
    return make("td", { class: said === guessed ? "right" : "wrong-cell" }, link);
  })));
  return make("table", {}, make("thead", {}, head), make("tbody", {}, ...rows));
}

const nothing = (words) => make("p", { class: "note" }, words);

function fill(found, classes) {
  const { n, confusion: cells, by_class: each, by_confidence: sure, agreement, doubtful, version } = found;
  say(find("mistakes-words"), n ? `Model version ${version} on ${plural(n, "held-out answer")}, which it was never trained on.`
    : "No held-out answer counts yet, so nothing is known of its mistakes.");
  const link = find("mistakes-doubtful");
  say(link, doubtful ? `Look again at ${plural(doubtful, "answer")} that the model finds improbable` : "All answers by how doubtful the model finds them");
  find("confusion").replaceChildren(cells.length ? confusion(cells, classes) : nothing("Nothing yet."));
  find("per-class").replaceChildren(each.length ? table(["class", "right", "of", "accuracy", "95% interval"], each.map((one) =>
    [one.name, count(one.right), count(one.n), percent(one.right / one.n), `${percent(one.low)} to ${percent(one.high)}`])) : nothing("Nothing yet."));
  find("per-sure").replaceChildren(sure.length ? table(["the model is", "items", "sure on average", "right"], sure.map((one) =>
    [`${percent(one.least)} to ${percent(one.most)} sure`, count(one.n), percent(one.mean), percent(one.right / one.n)])) : nothing("Nothing yet."));
  show(find("people-box"), agreement.length > 0);
  find("people").replaceChildren(table(["two people", "items", "agree", "kappa"], agreement.map((pair) =>
    [`${pair.one} and ${pair.other}`, count(pair.n), percent(pair.agree / pair.n), pair.kappa === null ? "–" : pair.kappa.toFixed(2)])));
}

// classes() are those of the page now.
export function setUpMistakes(classes) {
  const dialog = find("mistakes");
  find("mistakes-button").addEventListener("click", async () => {
    try {
      fill(await server.mistakes(), classes());
    } catch (error) {
      fill({ n: 0, confusion: [], by_class: [], by_confidence: [], agreement: [], doubtful: 0 }, []);
      say(find("mistakes-words"), error.message);
    }
    dialog.showModal();
  });
  dialog.addEventListener("click", (event) => event.target.closest("a") && dialog.close());
}
