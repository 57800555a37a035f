// The goal: so many answers, or an accuracy. How far it is, in the server's words, and a form to change it.

import { find, plural, say, show } from "./dom.js";
import * as server from "./server.js";

const NEAR = 60; // minutes: beyond, hours are said

let current = null;

function time(minutes) {
  if (minutes === null || minutes <= 0) return "";
  if (minutes < 1) return " Less than a minute left at your pace.";
  return minutes < NEAR ? ` About ${plural(Math.round(minutes), "minute")} left at your pace.`
    : ` About ${(minutes / 60).toFixed(1)} hours left at your pace.`;
}

const named = ({ kind, value }) => (kind === "answers" ? plural(value, "answer") : `${Math.round(1000 * value) / 10}% accuracy`);

export function goal(given) {
  current = given;
  show(find("goal"), given !== null);
  say(find("goal-change"), given === null ? "Set a goal" : "Change the goal");
  if (given === null) return;
  find("goal").classList.toggle("reached", given.reached);
  say(find("goal-name"), given.reached ? `Goal reached: ${named(given)}` : `Goal: ${named(given)}`);
  find("goal-bar").value = given.share;
  say(find("goal-words"), `${given.text}${given.reached ? " You can stop, or go on." : time(given.minutes_left)}`);
}

function open(opened) {
  show(find("goal-form"), opened);
  show(find("goal-change"), !opened);
  find("goal-change").setAttribute("aria-expanded", String(opened));
  show(find("goal-wrong"), false);
  if (!opened) return find("goal-change").focus();
  find("goal-kind").value = current?.kind ?? "answers";
  fill(current);
  show(find("goal-none"), current !== null);
  return find("goal-value").focus();
}

// What the number means follows the kind.
function fill(given) {
  const accuracy = find("goal-kind").value === "accuracy", same = given && given.kind === find("goal-kind").value;
  const input = find("goal-value");
  input.max = accuracy ? "99.9" : "";
  input.step = accuracy ? "0.1" : "1";
  if (same) input.value = accuracy ? Math.round(1000 * given.value) / 10 : given.value;
  else input.value = accuracy ? 90 : 300;
}

async function keep(body, changed) {
  try {
    goal((await server.post("goal", body)).goal);
    open(false);
    changed();
  } catch (error) {
    say(find("goal-wrong"), error.message);
    show(find("goal-wrong"), true);
  }
}

// changed() is called when the server has another goal.
export function setUpGoal(changed) {
  find("goal-change").addEventListener("click", () => open(true));
  find("goal-kind").addEventListener("change", () => fill(current));
  find("goal-cancel").addEventListener("click", () => open(false));
  find("goal-none").addEventListener("click", () => keep({ kind: null }, changed));
  find("goal-form").addEventListener("submit", (event) => {
    event.preventDefault();
    const kind = find("goal-kind").value, value = Number(find("goal-value").value);
    keep({ kind, value: kind === "accuracy" ? value / 100 : value }, changed);
  });
}
