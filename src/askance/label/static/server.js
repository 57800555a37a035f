// Talking to the server this page came from. A reply is one of three: the answer, a refusal in a
// sentence (it will not change by asking again), or nothing (it may, so the caller asks again).

const PATIENCE = 15000; // ms

async function ask(path, options = {}) {
  let reply, body;
  try {
    reply = await fetch(path, { ...options, cache: "no-store", signal: AbortSignal.timeout(PATIENCE) });
    body = await reply.json();
  } catch (error) {
    throw { gone: true, message: "The server does not answer.", cause: error };
  }
  if (reply.ok) return body;
  const message = body?.error?.message ?? `The server said ${reply.status}.`;
  if (reply.status === 401) throw { gone: true, locked: true, message: "This page is locked: open the link askance printed." };
  if (reply.status >= 500) throw { gone: true, message };
  throw { refused: message, status: reply.status, message };
}

// Why there is no such picture.
export async function refusal(path) {
  try {
    await ask(path);
  } catch (error) {
    if (error.refused) return error.refused;
    if (error.locked || !error.cause || !(error.cause instanceof SyntaxError)) throw error;
  }
  return "The browser cannot show it.";
}

const named = (annotator) => `annotator=${encodeURIComponent(annotator)}`;

export const state = (annotator) => ask(annotator ? `api/state?${named(annotator)}` : "api/state");

export const questions = (annotator, n) => ask(`api/questions?${named(annotator)}&n=${n}`);

export const items = (query) => ask(`api/items?${query}`);

export const item = (id) => ask(`api/items/${id.split("/").map(encodeURIComponent).join("/")}`);

export const post = (what, body) => ask(`api/${what}`, {
  method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) });

export const mistakes = () => ask("api/mistakes");
