// The accuracy estimate as answers come in: a line, its interval as a band, both axes named.

import { count, draw, percent } from "./dom.js";

const WIDE = 330, HIGH = 190;
const LEFT = 44, RIGHT = 10, TOP = 10, BELOW = 40;

// A round step with at most `most` of them on the way to `end`.
function step(end, most) {
  const rough = Math.max(end / most, 1);
  const power = 10 ** Math.floor(Math.log10(rough));
  return [1, 2, 5, 10].map((m) => m * power).find((s) => s >= rough);
}

const label = (x, y, anchor, text) => draw("text", { x, y, "text-anchor": anchor }, text);

// points: [{answers, accuracy, low, high}], by rising answers.
export function curve(points) {
  const last = points[points.length - 1];
  const every = step(last.answers, 4);
  const most = Math.max(every, Math.ceil(last.answers / every) * every);
  const x = (n) => LEFT + (n / most) * (WIDE - LEFT - RIGHT);
  const y = (share) => TOP + (1 - share) * (HIGH - TOP - BELOW);
  const at = (n, share) => `${x(n).toFixed(1)},${y(share).toFixed(1)}`;

  const svg = draw("svg", { viewBox: `0 0 ${WIDE} ${HIGH}`, role: "img",
    "aria-label": `Estimated accuracy after each training. Last: ${percent(last.accuracy)} after `
      + `${count(last.answers)} answers, between ${percent(last.low)} and ${percent(last.high)}.` });
  for (const share of [0, 0.25, 0.5, 0.75, 1]) {
    svg.append(draw("line", { class: share ? "gridline" : "axis", x1: LEFT, x2: WIDE - RIGHT, y1: y(share), y2: y(share) }),
      label(LEFT - 6, y(share) + 4, "end", percent(share)));
  }
  for (let n = 0; n <= most; n += every) svg.append(label(x(n), HIGH - BELOW + 17, n ? "middle" : "start", count(n)));
  svg.append(label((LEFT + WIDE - RIGHT) / 2, HIGH - 5, "middle", "answers given"));
  svg.append(draw("text", { transform: `translate(10 ${(TOP + HIGH - BELOW) / 2}) rotate(-90)`, "text-anchor": "middle" },
    "estimated accuracy"));

  const upper = points.map((p) => at(p.answers, p.high));
  const lower = points.map((p) => at(p.answers, p.low)).reverse();
  if (points.length === 1) {
    svg.append(draw("line", { class: "line", x1: x(last.answers), x2: x(last.answers), y1: y(last.low), y2: y(last.high) }));
  }
  svg.append(draw("polygon", { class: "band", points: [...upper, ...lower].join(" ") }),
    draw("polyline", { class: "line", points: points.map((p) => at(p.answers, p.accuracy)).join(" ") }));
  for (const p of points) svg.append(draw("circle", { class: "dot", cx: x(p.answers), cy: y(p.accuracy), r: 3 }));
  return svg;
}
