// Requests to the service. The token, if one is given, stays in this tab.
const KEY = "corank-token";

export const token = {
  get: () => sessionStorage.getItem(KEY) || "",
  set: (text) => (text ? sessionStorage.setItem(KEY, text) : sessionStorage.removeItem(KEY)),
};

export class Refused extends Error {
  constructor(status, detail) {
    super(detail);
    this.status = status;
  }
}

async function ask(path, options = {}) {
  const headers = { ...(options.headers || {}) };
  if (token.get()) headers.Authorization = `Bearer ${token.get()}`;
  let answer;
  try {
    answer = await fetch(path, { ...options, headers });
  } catch (why) {
    if (why.name === "AbortError") throw why;
    throw new Refused(0, "The service does not answer.");
  }
  const body = await (options.text && answer.ok ? answer.text() : answer.json().catch(() => null));
  if (!answer.ok) throw new Refused(answer.status, (body && body.detail) || `The service answered ${answer.status}.`);
  return body;
}

export const get = (path, query = {}, signal) => {
  const given = Object.entries(query).filter(([, value]) => value !== "" && value !== null && value !== undefined);
  return ask(`${path}?${new URLSearchParams(given)}`, { signal });
};

// A piece of the page, in which the service has escaped every text.
export const piece = (path) => ask(path, { text: true });

export const post = (path, body, signal) =>
  ask(path, { method: "POST", body: JSON.stringify(body), headers: { "Content-Type": "application/json" }, signal });

// Only the answer to the latest request of a kind counts: those before are given up.
export function latest() {
  let running = null;
  return async (work) => {
    if (running) running.abort();
    const mine = (running = new AbortController());
    try {
      const found = await work(mine.signal);
      return mine.signal.aborted ? undefined : found;
    } catch (why) {
      if (why.name === "AbortError" || mine.signal.aborted) return undefined;
      throw why;
    }
  };
}
