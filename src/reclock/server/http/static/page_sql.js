// An editor, results as a table, SUBSCRIBE live, and the past by a slider.
import { autocompletion, bracketMatching, closeBrackets, Compartment, completionKeymap, defaultKeymap, EditorState, EditorView, HighlightStyle, history, historyKeymap, keymap, lineNumbers, placeholder, PostgreSQL, sql as language, syntaxHighlighting, tags, useEffect, useRef, useState } from "./vendor/vendor.js";
import { rows, sql, subscribe } from "./api.js";
import { clock, html, moment, number, Problem, span } from "./parts.js";

const STYLE = HighlightStyle.define([
  { tag: tags.keyword, color: "var(--c0)", fontWeight: "600" }, { tag: [tags.string, tags.special(tags.string)], color: "var(--c3)" },
  { tag: tags.number, color: "var(--c2)" }, { tag: tags.comment, color: "var(--soft)", fontStyle: "italic" }, { tag: tags.typeName, color: "var(--c1)" },
]);
const MOST = 500;
const SECRET = /password|secret/i;
const past = () => JSON.parse(sessionStorage.getItem("queries") ?? "[]");

export function Sql({ now }) {
  const place = useRef(null), view = useRef(null), work = useRef(null), stop = useRef(null), go = useRef(null);
  const [result, show] = useState(null), [error, fail] = useState(null), [busy, wait] = useState(false), [live, follow] = useState(null);
  const [asOf, choose] = useState(null), [queries, remember] = useState(past);
  const run = async (text = view.current.state.doc.toString(), at = asOf) => {
    const query = text.trim().replace(/;\s*$/, "");
    if (!query) return;
    halt(); fail(null);
    if (!SECRET.test(query)) {
      const kept = [query, ...past().filter((q) => q !== query)].slice(0, 50);
      sessionStorage.setItem("queries", JSON.stringify(kept)); remember(kept);
    }
    if (/^subscribe\b/i.test(query)) return listen(query);
    wait(true);
    work.current = new AbortController();
    const begun = performance.now();
    try {
      const found = await sql(at === null ? query : `${query} AS OF ${at}`, [], MOST, work.current.signal);
      show({ ...found, millis: performance.now() - begun });
    } catch (e) {
      if (e.name !== "AbortError") { show(null); fail(e); mark(e.position); }
    } finally { wait(false); }
  };
  const mark = (position) => { if (position) { const at = Math.min(position - 1, view.current.state.doc.length); view.current.dispatch({ selection: { anchor: at }, scrollIntoView: true }); } };
  const halt = () => { stop.current?.(); stop.current = null; work.current?.abort(); follow(null); };
  const listen = (query) => {
    const state = { columns: [], rows: new Map(), changes: 0, time: null };
    let partial = [];
    show(null);
    stop.current = subscribe(query, (name, data) => {
      if (name === "columns") state.columns = data.columns.slice(2);
      if (name === "closed") fail(new Error("the stream has ended"));
      if (name === "failure") fail(data.error);
      if (name === "changes") {
        partial.push(...data.changes);
        if (data.timestamp === null) return;
        for (const [, entry] of state.rows) entry.mark = "";
        for (const [key, entry] of state.rows) if (entry.count <= 0) state.rows.delete(key);
        for (const [, diff, ...row] of partial) {
          const key = JSON.stringify(row), known = state.rows.get(key) ?? { row, count: 0, at: 0 };
          const change = Number(diff) || (diff === "delete" ? -1 : 1);
          known.count += change; known.mark = known.count > 0 ? "lit" : "gone"; known.at = ++state.changes;
          state.rows.set(key, known);
        }
        partial = [];
      }
      if (data.timestamp) state.time = Number(data.timestamp);
      follow({ ...state, ended: name === "end" });
    });
  };
  useEffect(() => {
    const nonce = document.querySelector("meta[name=csp-nonce]").content;
    const names = new Compartment(), known = (schema) => language({ dialect: PostgreSQL, schema, upperCaseKeywords: true });
    const doc = sessionStorage.getItem("draft") ?? "SELECT * FROM reclock.objects";
    view.current = new EditorView({ parent: place.current, state: EditorState.create({ doc, extensions: [
        EditorView.cspNonce.of(nonce), lineNumbers(), history(), bracketMatching(), closeBrackets(), autocompletion(), placeholder("SELECT …"), EditorView.lineWrapping,
        names.of(known({})), syntaxHighlighting(STYLE),
        EditorView.contentAttributes.of({ "aria-label": "SQL" }),
        keymap.of([{ key: "Mod-Enter", run: () => { go.current(); return true; } }, ...completionKeymap, ...defaultKeymap, ...historyKeymap]),
      ] }) });
    rows("SELECT table_schema, table_name, column_name FROM information_schema.columns").then((found) => {
      const schema = {};
      for (const c of found) (schema[c.table_schema === "public" ? c.table_name : `${c.table_schema}.${c.table_name}`] ??= []).push(c.column_name);
      if (place.current) view.current.dispatch({ effects: names.reconfigure(known(schema)) });
    }, () => {});
    return () => { const text = view.current.state.doc.toString(); if (!SECRET.test(text)) sessionStorage.setItem("draft", text); view.current.destroy(); stop.current?.(); };
  }, []);
  go.current = run;
  const put = (text) => view.current.dispatch({ changes: { from: 0, to: view.current.state.doc.length, insert: text } });
  return html`<div class="head"><div><h1>SQL</h1><p>Ctrl+Enter runs. SUBSCRIBE stays, and shows rows as they change.</p></div></div>
  <section class="card"><div class="editor" ref=${place}></div>
    <p class="row"><button class="primary" onClick=${() => run()} disabled=${busy}>${busy ? "Running …" : "Run"}</button>
      ${(busy || live) && html`<button onClick=${halt}>Stop</button>`}
      <label class="row small">History <select value="" onChange=${(e) => { if (e.target.value) put(e.target.value); e.target.value = ""; }} aria-label="Queries before"><option value="">${queries.length ? "choose a query …" : "nothing yet"}</option>${queries.map((q) => html`<option value=${q}>${q.slice(0, 80)}</option>`)}</select></label></p>
    <${Past} now=${now} asOf=${asOf} query=${() => view.current?.state.doc.toString() ?? ""} choose=${(t) => { choose(t); if (t !== null) run(undefined, t); }} /></section>
  <${Problem} error=${error} />
  ${result && html`<${Result} result=${result} />`}
  ${live && html`<${Live} live=${live} />`}`;
}

// The times at which all that a query names can be read; the query runs as of the one that is chosen.
function Past({ now, asOf, choose, query }) {
  const kept = now?.objects.filter((o) => o.since !== null && o.upper !== null && o.lag_ms !== null) ?? [];
  if (!kept.length) return null;
  const named = kept.filter((o) => query().includes(o.name)), high = Math.max(...kept.map((o) => o.upper)) - 1;
  const low = named.length ? Math.max(...named.map((o) => o.since)) : Math.min(...kept.map((o) => o.since));
  return html`<div class="past"><span class="small"><strong>AS OF: ${asOf === null ? "now" : `${moment(asOf)}, ${span(high - asOf)} ago`}</strong></span>
    <div class="row"><label class="grow"><input type="range" min=${low} max=${high} value=${asOf ?? high} aria-label="Time to read at" aria-valuetext=${moment(asOf ?? high)} onChange=${(e) => choose(Number(e.target.value))} /></label>
    <button onClick=${() => choose(null)} disabled=${asOf === null}>Now</button></div>
    <span class="small soft">${named.length ? `What ${named.map((o) => o.name).join(", ")} ${named.length > 1 ? "keep" : "keeps"}` : "The times that are kept"}: from ${moment(low)} to ${moment(high)}</span></div>`;
}

const cell = (value) => (value === null ? "NULL" : typeof value === "object" ? JSON.stringify(value) : String(value));
const RIGHT = /^(smallint|integer|bigint|numeric|real|double)/;
const head = (columns) => html`<thead><tr>${columns.map((c) => html`<th scope="col" class=${RIGHT.test(c.type) ? "n" : ""} title=${c.type}>${c.name}</th>`)}</tr></thead>`;
const line = (row, columns) => row.map((v, at) => html`<td class=${`${v === null ? "null " : ""}${RIGHT.test(columns[at]?.type) ? "n" : ""}`}>${cell(v)}</td>`);

function Result({ result: r }) {
  return html`<p class="soft small" role="status">${r.tag}${r.truncated ? ` (the first ${number(r.rows.length)})` : ""}${r.timestamp && ` at ${moment(Number(r.timestamp))}`} · ${span(r.millis)}${r.notices?.map((n) => html`<br />${n}`)}</p>
    ${r.columns.length > 0 && html`<div class="scroll" tabindex="0" role="region" aria-label="Rows"><table>${head(r.columns)}<tbody>${r.rows.map((row) => html`<tr>${line(row, r.columns)}</tr>`)}</tbody></table></div>`}`;
}

function Live({ live }) {
  const found = [...live.rows.values()].sort((a, b) => b.at - a.at).slice(0, MOST);
  return html`<p class="soft small" role="status">${live.ended ? "ended" : "live"}: ${number([...live.rows.values()].filter((r) => r.count > 0).length)} rows${live.time && `, complete up to ${clock(live.time)}`}</p>
    <div class="scroll" tabindex="0" role="region" aria-label="Rows as they change"><table>${head(live.columns)}<tbody>${found.map((r) => html`<tr key=${JSON.stringify(r.row) + r.at} class=${r.mark}>${line(r.row, live.columns)}</tr>`)}</tbody></table></div>`;
}
