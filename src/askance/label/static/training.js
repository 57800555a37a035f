// The model: which one it is, what it does now, "train now", and a download that waits for the last answers.

import { count, find, make, plural, say, show } from "./dom.js";
import * as server from "./server.js";

const LONG = 20; // seconds of one training that are worth a word

export function model({ version, training, preparing, trained_on, untrained, running_for, next_at, error }) {
  say(find("version"), version ? `version ${version}` : "none yet");
  const after = next_at > 0 ? `next after ${plural(next_at, "answer")}` : "next soon";
  const state = find("model-state");
  state.classList.toggle("pulse", training || preparing !== null);
  if (preparing) say(state, `preparing ${count(preparing.done)} of ${count(preparing.total)}… go on answering`);
  else if (error && !training) say(state, "the last training failed; it is tried again");
  else if (training) say(state, running_for > LONG ? `training for ${Math.round(running_for)} s… go on answering` : "training now… go on answering");
  else say(state, version ? `from ${plural(trained_on, "answer")}; ${after}` : `first ${after.replace("next ", "")}`);
  const button = find("train-now");
  show(button, untrained > 0 && !training && !preparing);
  say(button, `Train now on ${plural(untrained, "new answer")}`);
}

async function download(link) {
  const note = find("export-note");
  const fetched = !link.pathname.endsWith("/answers");
  say(note, fetched ? "Training on the last answers first, where there are any…" : "");
  show(note, fetched);
  try {
    const reply = await fetch(link.href, { cache: "no-store" });
    if (!reply.ok) throw new Error((await reply.json().catch(() => null))?.error?.message ?? `The server said ${reply.status}.`);
    const url = URL.createObjectURL(await reply.blob());
    const name = /filename="([^"]+)"/.exec(reply.headers.get("content-disposition") ?? "")?.[1] ?? "export";
    make("a", { href: url, download: name }).click();
    setTimeout(() => URL.revokeObjectURL(url), 60_000);
    say(note, `${name} is in your downloads.`);
  } catch (error) {
    const gone = error instanceof TypeError ? "The server does not answer." : error.message;
    say(note, `Nothing was downloaded. ${gone}`);
  }
  show(note, true);
}

// changed() is called when a training was asked for.
export function setUpTraining(changed) {
  find("train-now").addEventListener("click", async () => {
    try {
      await server.post("train", {});
      changed();
    } catch (error) {
      say(find("model-state"), error.message);
    }
  });
  find("exports").addEventListener("click", (event) => {
    const link = event.target.closest("a[download]");
    if (!link) return;
    event.preventDefault();
    download(link);
  });
}
