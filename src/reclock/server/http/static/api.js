// Everything that is asked of the server. Answers are data: nothing of them is ever made into HTML.
export class Refused extends Error {
  constructor(status, error) {
    super(error?.message ?? `the server answered ${status}`);
    this.status = status;
    this.code = error?.code;
    this.detail = error?.detail;
    this.hint = error?.hint;
    this.position = error?.position;
  }
}

async function ask(path, options) {
  const answer = await fetch(path, { credentials: "same-origin", ...options });
  const found = await answer.json().catch(() => ({}));
  if (!answer.ok) throw new Refused(answer.status, found.error);
  return found;
}

const posted = (body, signal) => ({
  method: "POST", body: JSON.stringify(body), signal, headers: { "content-type": "application/json" },
});

export const get = (path) => ask(path);
export const login = (user, password) => ask("/api/login", posted({ user, password }));
export const logout = () => ask("/api/logout", posted({}));
export const sql = (query, { params = [], limit = 1000, at = null, signal } = {}) => ask("/api/sql", posted({ query, params, limit, as_of: at }, signal));

// Rows as objects; bigint as numbers: for what is known to be small, such as times and counts.
export async function rows(query, params) {
  const found = await sql(query, { params, limit: 20000 });
  return found.rows.map((row) => Object.fromEntries(row.map((value, at) => {
    const { name, type } = found.columns[at];
    return [name, type === "bigint" && value !== null ? Number(value) : value];
  })));
}

// A subscription, from a time or from now; `tell(event, data)` gets what comes. Cut off, it goes on after the last time that came,
// without gap or repeat; `tell("cut")` says so. Returns how to end it.
export function subscribe(query, at, tell) {
  const stop = new AbortController();
  let last = null, wait = 500;
  const read = async (answer) => {
    const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
    for (let rest = ""; ;) {
      const { value, done } = await reader.read();
      if (done) return false;
      const lines = (rest + value).split("\n");
      rest = lines.pop();
      for (const line of lines) {
        const event = JSON.parse(line);
        if (event.timestamp) last = event.timestamp;
        tell(event.event, { ...event, again: last !== null });
        if (event.event === "end" || event.event === "failure") return true;
      }
    }
  };
  const go = async () => {
    while (!stop.signal.aborted) {
      try {
        const ask = posted({ query, as_of: at }, stop.signal);
        const headers = { ...ask.headers, accept: "application/x-ndjson", ...(last && { "last-event-id": last }) };
        const answer = await fetch("/api/subscribe", { credentials: "same-origin", ...ask, headers });
        if (answer.ok) { wait = 500; if (await read(answer)) return; }
        else if (last === null || answer.status < 500) { tell("failure", { error: new Refused(answer.status, (await answer.json().catch(() => ({}))).error) }); return; }
      } catch { /* the network, or who reads, has ended it */ }
      if (stop.signal.aborted) return;
      tell("cut", {});
      await new Promise((done) => setTimeout(done, wait));
      wait = Math.min(2 * wait, 10000);
    }
  };
  go();
  return () => stop.abort();
}
