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
export const sql = (query, params = [], limit = 1000, signal) => ask("/api/sql", posted({ query, params, limit }, signal));

// Rows as objects; bigint as numbers: for what is known to be small, such as times and counts.
export async function rows(query, params) {
  const found = await sql(query, params, 20000);
  return found.rows.map((row) => Object.fromEntries(row.map((value, at) => {
    const { name, type } = found.columns[at];
    return [name, type === "bigint" && value !== null ? Number(value) : value];
  })));
}

// A subscription; `tell(event, data)` gets what comes. Returns how to end it.
export function subscribe(query, tell) {
  const source = new EventSource(`/api/subscribe?query=${encodeURIComponent(query)}`);
  for (const name of ["columns", "changes", "progress", "end", "failure"]) {
    source.addEventListener(name, (event) => {
      if (name === "end" || name === "failure") source.close();
      tell(name, JSON.parse(event.data));
    });
  }
  source.onerror = () => { if (source.readyState === EventSource.CLOSED) tell("closed", {}); };
  return () => source.close();
}
