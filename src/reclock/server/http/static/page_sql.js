// An editor, results as a table, SUBSCRIBE live, and the past by a slider.
import { autocompletion, bracketMatching, closeBrackets, Compartment, completionKeymap, defaultKeymap, EditorState, EditorView, HighlightStyle, history, historyKeymap, keymap, lineNumbers, placeholder, sql as language, syntaxHighlighting, tags } from "./vendor/editor.js";
import { useEffect, useRef, useState } from "./vendor/core.js";
import { rows, sql, subscribe } from "./api.js";
import { Reclock } from "./dialect.js";
import { applied, begun, head, line, Live, settled, SETTLES } from "./live.js";
import { html, moment, number, Problem, span } from "./parts.js";

const STYLE = HighlightStyle.define([
  { tag: tags.keyword, color: "var(--c0)", fontWeight: "600" }, { tag: [tags.string, tags.special(tags.string)], color: "var(--c3)" },
  { tag: tags.number, color: "var(--c2)" }, { tag: tags.comment, color: "var(--soft)", fontStyle: "italic" }, { tag: tags.typeName, color: "var(--c1)" },
]);
const MOST = 500;
const READS = /^(select|with|values|table|\()\b/i;
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
    const start = performance.now();
    try {
      const found = await sql(at !== null && READS.test(query) ? `${query} AS OF ${at}` : query, [], MOST, work.current.signal);
      show({ ...found, millis: performance.now() - start });
    } catch (e) {
      if (e.name !== "AbortError") { show(null); fail(e); mark(e.position); }
    } finally { wait(false); }
  };
  const mark = (position) => { if (position) { const at = Math.min(position - 1, view.current.state.doc.length); view.current.dispatch({ selection: { anchor: at }, scrollIntoView: true }); } };
  const halt = () => { stop.current?.(); stop.current = null; work.current?.abort(); follow(null); };
  const listen = (query) => {
    let state = begun(), timer;
    show(null);
    const end = subscribe(query, (name, data) => {
      if (name === "failure") { fail(data.error); mark(data.error.position); }
      state = applied(state, name, data);
      const tell = () => follow(state.columns.length || name === "cut" ? { ...state } : null);
      clearTimeout(timer);
      timer = setTimeout(() => { state = settled(state); tell(); }, SETTLES);
      tell();
    });
    stop.current = () => { clearTimeout(timer); end(); };
  };
  useEffect(() => {
    const nonce = document.querySelector("meta[name=csp-nonce]").content;
    const names = new Compartment(), known = (schema) => language({ dialect: Reclock, schema, upperCaseKeywords: true });
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
  ${live && html`<${Live} live=${live} most=${MOST} />`}`;
}

// The times at which all that a query names can be read; the query runs as of the one that is chosen.
function Past({ now, asOf, choose, query }) {
  const kept = now?.objects.filter((o) => o.since !== null && o.upper !== null && o.lag_ms !== null) ?? [];
  const [slid, slide] = useState(null), shown = slid ?? asOf; // the words follow the thumb; the query runs when it rests
  if (!kept.length) return null;
  const named = kept.filter((o) => query().includes(o.name)), high = Math.max(...kept.map((o) => o.upper)) - 1;
  const low = named.length ? Math.max(...named.map((o) => o.since)) : Math.min(...kept.map((o) => o.since));
  return html`<div class="past"><span class="small"><strong>AS OF: ${shown === null ? "now" : `${moment(shown)}, ${span(high - shown)} ago`}</strong></span>
    <div class="row"><label class="grow"><input type="range" min=${low} max=${high} value=${shown ?? high} aria-label="Time to read at" aria-valuetext=${moment(shown ?? high)} onInput=${(e) => slide(Number(e.target.value))} onChange=${(e) => { slide(null); choose(Number(e.target.value)); }} /></label>
    <button onClick=${() => choose(null)} disabled=${asOf === null}>Now</button></div>
    <span class="small soft">${named.length ? `What ${named.map((o) => o.name).join(", ")} ${named.length > 1 ? "keep" : "keeps"}` : "The times that are kept"}: from ${moment(low)} to ${moment(high)}</span></div>`;
}

function Result({ result: r }) {
  return html`<p class="soft small" role="status">${r.tag}${r.truncated ? ` (the first ${number(r.rows.length)})` : ""}${r.timestamp && ` at ${moment(Number(r.timestamp))}`} · ${span(r.millis)}${r.notices?.map((n) => html`<br />${n}`)}</p>
    ${r.columns.length > 0 && html`<div class="scroll" tabindex="0" role="region" aria-label="Rows"><table>${head(r.columns)}<tbody>${r.rows.map((row) => html`<tr>${line(row, r.columns)}</tr>`)}</tbody></table></div>`}`;
}
