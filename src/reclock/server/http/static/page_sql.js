// An editor, results as a table, SUBSCRIBE live, and the past by a slider.
import { autocompletion, bracketMatching, closeBrackets, Compartment, completionKeymap, defaultKeymap, EditorState, EditorView, HighlightStyle, history, historyKeymap, keymap, lineNumbers, placeholder, sql as language, syntaxHighlighting, tags } from "./vendor/editor.js";
import { useEffect, useRef, useState } from "./vendor/core.js";
import { get, rows, sql, subscribe } from "./api.js";
import { Reclock } from "./dialect.js";
import { applied, begun, head, line, Live, settled, SETTLES } from "./live.js";
import { html, moment, number, Problem, span, usePoll } from "./parts.js";
import { isSubscribe, mayRemember, named } from "./text.js";

const STYLE = HighlightStyle.define([
  { tag: tags.keyword, color: "var(--c0)", fontWeight: "600" }, { tag: [tags.string, tags.special(tags.string)], color: "var(--c3)" },
  { tag: tags.number, color: "var(--c2)" }, { tag: tags.comment, color: "var(--soft)", fontStyle: "italic" }, { tag: tags.typeName, color: "var(--type)" },
]);
const MOST = 500;
const REMEMBERED = 50;
const before = () => JSON.parse(sessionStorage.getItem("queries") ?? "[]");

export function Sql({ now }) {
  const place = useRef(null), view = useRef(null), work = useRef(null), stop = useRef(null), go = useRef(null);
  const [result, show] = useState(null), [error, fail] = useState(null), [busy, wait] = useState(false), [live, follow] = useState(null);
  const [asOf, choose] = useState(null), [queries, remember] = useState(before), [secret, hide] = useState(false), [written, write] = useState("");
  const graph = usePoll(() => get("/api/pipeline"), 10000, [result]).data; // a statement may have made another one
  const run = async (text = view.current.state.doc.toString(), at = asOf) => {
    const query = text.trim();
    if (!query) return;
    halt(); fail(null); hide(!mayRemember(query));
    if (mayRemember(query)) {
      const kept = [query, ...before().filter((q) => q !== query)].slice(0, REMEMBERED);
      sessionStorage.setItem("queries", JSON.stringify(kept)); remember(kept);
    }
    if (isSubscribe(query)) return listen(query, at);
    wait(true);
    const mine = work.current = new AbortController();
    const start = performance.now();
    try {
      const found = await sql(query, { limit: MOST, at, signal: mine.signal });
      show({ ...found, millis: performance.now() - start });
    } catch (e) {
      if (e.name !== "AbortError") { show(null); fail(e); mark(query, e.position); }
    } finally { if (work.current === mine) wait(false); }
  };
  const mark = (query, position) => { // which counts characters of the query, not of JavaScript
    if (!position || !view.current) return;
    const doc = view.current.state.doc, at = doc.toString().indexOf(query) + [...query].slice(0, position - 1).join("").length;
    view.current.dispatch({ selection: { anchor: Math.max(0, Math.min(at, doc.length)) }, scrollIntoView: true });
  };
  const halt = () => { stop.current?.(); stop.current = null; work.current?.abort(); follow(null); };
  const listen = (query, at) => {
    let state = begun(), timer;
    show(null);
    const end = subscribe(query, at, (name, data) => {
      if (name === "failure") { fail(data.error); mark(query, data.error.position); }
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
        EditorView.updateListener.of((change) => { if (change.docChanged) write(change.state.doc.toString()); }),
        EditorView.contentAttributes.of({ "aria-label": "SQL" }),
        keymap.of([{ key: "Mod-Enter", run: () => { go.current(); return true; } }, ...completionKeymap, ...defaultKeymap, ...historyKeymap]),
      ] }) });
    write(doc);
    rows("SELECT table_schema, table_name, column_name FROM information_schema.columns").then((found) => {
      const schema = {};
      for (const c of found) (schema[c.table_schema === "public" ? c.table_name : `${c.table_schema}.${c.table_name}`] ??= []).push(c.column_name);
      if (place.current) view.current.dispatch({ effects: names.reconfigure(known(schema)) });
    }, () => {});
    return () => {
      const text = view.current.state.doc.toString();
      if (sessionStorage.getItem("role") && mayRemember(text)) sessionStorage.setItem("draft", text); // not once one has logged out
      view.current.destroy(); view.current = null; stop.current?.(); work.current?.abort();
    };
  }, []);
  go.current = run;
  const put = (text) => view.current.dispatch({ changes: { from: 0, to: view.current.state.doc.length, insert: text } });
  return html`<div class="head"><div><h1>SQL</h1><p>Ctrl+Enter runs. SUBSCRIBE stays, and shows rows as they change.</p></div></div>
  <section class="card"><div class="editor" ref=${place}></div>
    <p class="row"><button class="primary" onClick=${() => run()} disabled=${busy}>${busy ? "Running …" : "Run"}</button>
      ${(busy || live) && html`<button onClick=${halt}>Stop</button>`}
      <label class="row small history">History <select value="" onChange=${(e) => { if (e.target.value) put(e.target.value); e.target.value = ""; }} aria-label="Queries before"><option value="">${queries.length ? "choose a query …" : "nothing yet"}</option>${queries.map((q) => html`<option value=${q}>${q.slice(0, 80)}</option>`)}</select></label>
      ${secret && html`<span class="small soft" role="status">Not kept in the history: it may have a secret.</span>`}</p>
    <${Past} now=${now} asOf=${asOf} text=${written} objects=${graph?.objects ?? []} choose=${(t) => { choose(t); run(undefined, t); }} /></section>
  <${Problem} error=${error} />
  ${result && html`<${Result} result=${result} />`}
  ${live && html`<${Live} live=${live} most=${MOST} />`}`;
}

// What is kept of what a text names. A view keeps nothing: what it reads does.
function keeping(text, objects, kept) {
  const known = new Map(objects.map((o) => [o.name, o])), found = new Set(), open = named(text, [...known.keys()]);
  while (open.length) {
    const name = open.pop();
    if (found.has(name)) continue;
    found.add(name);
    if (known.get(name)?.kind === "view") open.push(...known.get(name).reads);
  }
  return kept.filter((o) => found.has(o.name));
}

// The times at which all that a query names can be read; the query runs as of the one that is chosen.
function Past({ now, asOf, choose, text, objects }) {
  const kept = now?.objects.filter((o) => o.since !== null && o.upper !== null) ?? [];
  const [slid, slide] = useState(null), shown = slid ?? asOf; // the words follow the thumb; the query runs when it rests
  const used = keeping(text, objects, kept), all = used.length ? used : kept.filter((o) => o.lag_ms !== null);
  if (!all.length) return null;
  const high = (used.length ? Math.min : Math.max)(...all.map((o) => o.upper)) - 1, low = (used.length ? Math.max : Math.min)(...all.map((o) => o.since));
  return html`<div class="past"><span class="small"><strong>AS OF: ${shown === null ? "now" : `${moment(shown)}, ${span(high - shown)} ago`}</strong></span>
    <div class="row"><label class="grow"><input type="range" min=${low} max=${Math.max(low, high)} value=${shown ?? high} aria-label="Time to read at" aria-valuetext=${moment(shown ?? high)} onInput=${(e) => slide(Number(e.target.value))} onChange=${(e) => { slide(null); choose(Number(e.target.value)); }} /></label>
    <button onClick=${() => choose(null)} disabled=${asOf === null}>Now</button></div>
    <span class="small soft">${used.length ? `What ${used.map((o) => o.name).join(", ")} ${used.length > 1 ? "keep" : "keeps"}` : "The times that are kept"}: from ${moment(low)} to ${moment(high)}</span></div>`;
}

function Result({ result: r }) {
  return html`<p class="soft small" role="status">${r.tag}${r.truncated ? ` (the first ${number(r.rows.length)})` : ""}${r.timestamp && ` at ${moment(Number(r.timestamp))}`} · ${span(r.millis)}${r.notices?.map((n) => html`<br />${n}`)}</p>
    ${r.columns.length > 0 && html`<div class="scroll" tabindex="0" role="region" aria-label="Rows"><table>${head(r.columns)}<tbody>${r.rows.map((row) => html`<tr>${line(row, r.columns)}</tr>`)}</tbody></table></div>`}`;
}
