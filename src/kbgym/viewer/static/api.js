// Asking the server. An answer is kept while the page is open, except what a run in progress may change.

const kept = new Map();

export class Refusal extends Error {}

function address(name, params) {
  const query = new URLSearchParams();
  for (const [key, value] of Object.entries(params)) {
    if (value !== null && value !== undefined && value !== "") query.set(key, value);
  }
  const text = query.toString();
  return `api/${name}${text ? `?${text}` : ""}`;
}

/** The JSON of a route; a refusal is thrown with the server's own sentence. */
export async function get(name, params = {}, { fresh = false, signal } = {}) {
  const where = address(name, params);
  if (!fresh && kept.has(where)) return kept.get(where);
  const asked = ask(where, signal);
  if (!fresh) {
    kept.set(where, asked);
    asked.catch(() => kept.delete(where));
  }
  return asked;
}

async function ask(where, signal) {
  let answer;
  try {
    answer = await fetch(where, { signal });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Refusal("The viewer does not answer; is `kbgym view` still running?");
  }
  const body = await answer.json().catch(() => null);
  if (!answer.ok) throw new Refusal(body?.error ?? `The viewer answered with status ${answer.status}.`);
  return body;
}

/** A block of bytes; null while the server is still working on it (status 202). */
export async function bytes(name, params = {}) {
  const answer = await fetch(address(name, params));
  if (answer.status === 202) return { waiting: await answer.json() };
  if (!answer.ok) throw new Refusal((await answer.json().catch(() => null))?.error ?? `status ${answer.status}`);
  return { data: await answer.arrayBuffer() };
}

export const csvAddress = (run, table) => address("table.csv", { run, name: table });

/** Forget everything, because what is shown has grown. */
export function forget() {
  kept.clear();
}
