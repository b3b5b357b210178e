// The shell: who is logged in, which page is shown, light or dark.
import { render, useEffect, useRef, useState } from "./vendor/core.js";
import { get, login, logout } from "./api.js";
import { html, Problem, usePoll } from "./parts.js";
import { Overview } from "./page_overview.js";

const icon = (d) => html`<svg viewBox="0 0 24 24" fill="none" stroke="currentColor" stroke-width="2" stroke-linecap="round" stroke-linejoin="round" aria-hidden="true"><path d=${d} /></svg>`;
const PAGES = [
  ["overview", "Overview", Overview, "M3 12h4l3 8 4-16 3 8h4"],
  ["pipeline", "Pipeline", () => import("./page_pipeline.js").then((m) => m.Pipeline), "M5 6h4v4H5zM15 3h4v4h-4zM15 15h4v4h-4zM9 8h3v-3h3M12 8v9h3"],
  ["sql", "SQL", () => import("./page_sql.js").then((m) => m.Sql), "M4 5l6 7-6 7M12 19h8"],
  ["time", "Time", () => import("./page_time.js").then((m) => m.Time), "M3 20h6v-6h6V8h6"],
  ["sources", "Sources", () => import("./page_ends.js").then((m) => m.Sources), "M12 3v12m0 0l-5-5m5 5l5-5M4 21h16"],
  ["sinks", "Sinks", () => import("./page_ends.js").then((m) => m.Sinks), "M12 15V3m0 0L7 8m5-5l5 5M4 21h16"],
  ["settings", "Settings", () => import("./page_settings.js").then((m) => m.Settings), "M4 7h10m4 0h2M4 17h2m4 0h10M14 4v6M8 14v6"],
];

function Login({ done }) {
  const [error, fail] = useState(null), [busy, work] = useState(false);
  const submit = async (event) => {
    event.preventDefault();
    const form = new FormData(event.target);
    work(true);
    try { await login(form.get("user"), form.get("password")); done(); }
    catch (e) { fail(e); } finally { work(false); }
  };
  return html`<main id="main"><form class="card login" onSubmit=${submit}>
    <div class="brand"><img src="/static/icon.svg" alt="" />reclock</div><h1>Log in</h1>
    <p class="soft">As a role of the database, as with psql.</p>
    <label for="user">Role</label><input id="user" name="user" autocomplete="username" required autofocus />
    <label for="password">Password</label><input id="password" name="password" type="password" autocomplete="current-password" />
    <p><button class="primary" disabled=${busy}>Log in</button></p><${Problem} error=${error} /></form></main>`;
}

const decoded = (text) => { try { return decodeURIComponent(text); } catch { return text; } };
const DARK = window.matchMedia("(prefers-color-scheme: dark)");
const wanted = () => (DARK.matches ? "dark" : "light");

// What one role has written is not for the next that logs in.
function forget(user) {
  if (sessionStorage.getItem("role") !== String(user)) sessionStorage.clear();
  if (user !== undefined) sessionStorage.setItem("role", String(user));
}

function App() {
  const [who, know] = useState(undefined);
  const [route, go] = useState(location.hash.slice(2) || "overview");
  const [theme, dress] = useState(localStorage.getItem("theme") ?? wanted());
  useEffect(() => {
    const follow = () => dress(localStorage.getItem("theme") ?? wanted());
    DARK.addEventListener("change", follow);
    return () => DARK.removeEventListener("change", follow);
  }, []);
  const look = () => get("/api/session").then((found) => { forget(found.user); know(found); }, () => know(null));
  useEffect(() => { look(); }, []);
  useEffect(() => {
    const moved = () => go(location.hash.slice(2) || "overview");
    addEventListener("hashchange", moved);
    return () => removeEventListener("hashchange", moved);
  }, []);
  document.documentElement.dataset.theme = theme;
  const [name, , rest] = [route.split("/")[0], 0, route.split("/").slice(1).join("/")];
  const page = PAGES.find(([id]) => id === name) ?? PAGES[0];
  useEffect(() => {
    document.title = `${page[1]} · reclock`;
    const link = document.querySelector("nav a[aria-current]"), nav = link?.parentElement; // on a phone they are a row that scrolls
    if (nav && nav.scrollWidth > nav.clientWidth) nav.scrollLeft = link.offsetLeft - (nav.clientWidth - link.clientWidth) / 2;
  }, [page, who]);
  if (who === undefined) return html`<main id="main" aria-busy="true"></main>`;
  if (who === null) return html`<${Login} done=${look} />`;
  const toggle = () => {
    const next = theme === "dark" ? "light" : "dark";
    if (next === wanted()) localStorage.removeItem("theme"); else localStorage.setItem("theme", next); // as the system says needs no choice
    dress(next);
  };
  return html`<div class="shell"><header class="side">
    <div class="brand"><img src="/static/icon.svg" alt="" />reclock</div>
    <nav aria-label="Pages">${PAGES.map(([id, title, , d]) => html`<a href=${`#/${id}`} aria-current=${id === page[0] ? "page" : null}>${icon(d)}${title}</a>`)}</nav>
    <div class="foot"><span>${who.user ?? "this machine"}${who.superuser ? " · superuser" : ""}</span>
      <span class="row"><button onClick=${toggle} aria-label=${`Switch to ${theme === "dark" ? "light" : "dark"}`}>${theme === "dark" ? "☀" : "☾"}</button>
      ${who.user && html`<button onClick=${() => logout().finally(() => { know(null); forget(); })}>Log out</button>`}</span></div>
  </header><main id="main" tabindex="-1"><${Shown} title=${page[1]} page=${page[2]} key=${page[0]} theme=${theme} rest=${decoded(rest)} who=${who} left=${() => know(null)} /></main></div>`;
}

// All pages share one look at how everything does. What a page needs comes when it is first opened.
const LOADED = new Map([[Overview, Overview]]);
function Shown({ title, page, theme, rest, who, left }) {
  const { data, error } = usePoll(() => get("/api/overview"), 2000);
  const samples = useHistory(data), speed = useSpeed(data);
  const [, again] = useState(0), [missing, miss] = useState(null);
  useEffect(() => { if (error?.status === 401) left(); }, [error]);
  useEffect(() => { if (!LOADED.has(page)) page().then((found) => { LOADED.set(page, found); again((n) => n + 1); }, () => miss({ message: "this page could not be fetched", hint: "reload the console when the server is there" })); }, [page]);
  const shown = LOADED.get(page);
  return html`${error && error.status !== 401 && html`<${Problem} error=${error.status ? error : { message: "the server does not answer", hint: "what is shown is from before; it goes on by itself when the server is back" }} />`}
    ${shown ? html`<${shown} now=${data} samples=${samples} speed=${speed} theme=${theme} rest=${rest} who=${who} />` : html`<h1>${title}</h1><${Problem} error=${missing} />`}`;
}

// An overview has the last samples; the hour before is asked for once, and what was missed.
const KEPT = [];
function useHistory(now) {
  const [, again] = useState(0);
  useEffect(() => {
    const add = ({ samples }) => {
      KEPT.push(...samples.filter((s) => s.t > (KEPT.at(-1)?.t ?? 0)));
      if (KEPT.length > 720) KEPT.splice(0, KEPT.length - 720);
      again((n) => n + 1);
    };
    const last = KEPT.at(-1)?.t ?? 0, first = now?.samples[0]?.t ?? 0;
    if (first > last) get(`/api/history?since=${last}`).then(add, () => {}); // or with the next overview
    else if (now?.samples.at(-1)?.t > last) add(now);
  }, [now]);
  return KEPT;
}

// How fast a counter of an object grows, over the last looks: `speed("records", name)` a second.
function useSpeed(now) {
  const seen = useRef([]);
  if (now && seen.current.at(-1)?.now !== now.now) {
    const counted = (all, of) => new Map(all.map((x) => [x.name, x[of]]));
    seen.current.push({ now: now.now, records: counted(now.sources, "records"), changed: counted(now.objects, "changed"), messages: counted(now.sinks, "messages") });
    while (seen.current.length > 2 && seen.current.at(-1).now - seen.current[1].now >= 8000) seen.current.shift();
  }
  return (part, name) => {
    const first = seen.current[0], last = seen.current.at(-1);
    const a = first?.[part].get(name), b = last?.[part].get(name);
    return a === undefined || b === undefined || b < a || last.now <= first.now ? null : (1000 * (b - a)) / (last.now - first.now);
  };
}

render(html`<${App} />`, document.getElementById("app"));
