// The graph of objects, drawn from left to right, and one of them from within.
import { useEffect, useMemo, useState } from "./vendor/core.js";
import { dagre } from "./vendor/graph.js";
import { get, rows, sql } from "./api.js";
import { Code } from "./code.js";
import { bytes, fitted, html, number, Pill, Problem, rate, span, STRIPES, Table, usePoll, useWidth } from "./parts.js";

const H = 70, SMALLEST = 0.66, NAMED = "650 13.5px Inter, system-ui, sans-serif";

// From left to right, unless from top to bottom is easier to read in so much room.
function placed(objects, room) {
  const across = laid(objects, "LR", 206, 64), scale = (g) => Math.min(1, room / g.graph().width);
  if (scale(across) >= SMALLEST || !objects.length) return { graph: across, W: 206, down: false, scale: scale(across) };
  const down = laid(objects, "TB", 144, 40);
  const better = room < 640 && scale(down) > scale(across);
  return better ? { graph: down, W: 144, down: true, scale: Math.max(SMALLEST, scale(down)) } : { graph: across, W: 206, down: false, scale: SMALLEST };
}

function laid(objects, rankdir, W, ranksep) {
  const graph = new dagre.graphlib.Graph().setGraph({ rankdir, nodesep: 22, ranksep, marginx: 14, marginy: 14 }).setDefaultEdgeLabel(() => ({}));
  for (const o of objects) graph.setNode(o.name, { width: W, height: H });
  for (const o of objects) for (const read of o.reads) if (graph.hasNode(read)) graph.setEdge(read, o.name);
  dagre.layout(graph);
  return graph;
}

export function Pipeline({ now, speed: fast, rest }) {
  const { data, error } = usePoll(() => get("/api/pipeline"), 5000);
  const text = JSON.stringify(data?.objects ?? []);
  const [place, wide] = useWidth(0), room = wide || 1000;
  const { graph, W, down, scale } = useMemo(() => placed(JSON.parse(text), room), [text, room]);
  const ready = Boolean(data && now);
  useEffect(() => { if (rest) document.querySelector("g.node.on")?.scrollIntoView({ inline: "center", block: "nearest" }); }, [rest, text, ready]);
  if (!ready) return html`<h1>Pipeline</h1><${Problem} error=${error} />`;
  const known = new Map(now.objects.map((o) => [o.name, o]));
  const state = new Map([...now.sources, ...now.sinks].map((o) => [o.name, o]));
  const speed = (name) => fast("changed", name) ?? fast("messages", name);
  const open = (name) => { location.hash = `#/pipeline/${encodeURIComponent(name)}`; };
  const size = graph.graph();
  const curve = (e) => {
    const a = graph.node(e.v), b = graph.node(e.w), inner = graph.edge(e).points.slice(1, -1);
    const p = down ? [{ x: a.x, y: a.y + H / 2 }, ...(inner.length > 1 ? inner : []), { x: b.x, y: b.y - H / 2 - 7 }]
      : [{ x: a.x + W / 2, y: a.y }, ...(inner.length > 1 ? inner : []), { x: b.x - W / 2 - 7, y: b.y }];
    if (down) return `M${p[0].x},${p[0].y}` + p.slice(1).map((q, n) => { const o = p[n], mid = (o.y + q.y) / 2; return `C${o.x},${mid} ${q.x},${mid} ${q.x},${q.y}`; }).join("");
    return `M${p[0].x},${p[0].y}` + p.slice(1).map((q, n) => { const o = p[n], mid = (o.x + q.x) / 2; return `C${mid},${o.y} ${mid},${q.y} ${q.x},${q.y}`; }).join("");
  };
  return html`<div class="head"><div><h1>Pipeline</h1><p>Sources and tables ${down ? "at the top, sinks at the bottom" : "on the left, sinks on the right"}. Choose one to look inside.</p></div></div>
  <div class=${`two ${rest ? "open" : ""}`}><section class="card pipe" ref=${place} tabindex="0" role="region" aria-label="Graph of objects">
    ${data.objects.length ? html`<svg viewBox=${`0 0 ${size.width} ${size.height}`} width=${Math.round(size.width * scale)} height=${Math.round(size.height * scale)} role="group" aria-label="Objects">
      <defs>${["arrow", "arrow-on"].map((id) => html`<marker id=${id} viewBox="0 0 8 8" refX="1" refY="4" markerWidth="7" markerHeight="7" orient="auto" markerUnits="userSpaceOnUse"><path class=${id} d="M0,0 L8,4 L0,8z" /></marker>`)}</defs>
      ${graph.edges().map((e) => { const flow = (speed(e.v) ?? 0) > 0;
        return html`<path class=${`edge ${flow ? "flow" : ""}`} d=${curve(e)} marker-end=${`url(#${flow ? "arrow-on" : "arrow"})`} />`; })}
      ${data.objects.map((o) => { const n = graph.node(o.name), s = state.get(o.name), k = known.get(o.name), v = speed(o.name);
        const lag = s?.lag_ms ?? k?.lag_ms;
        const bad = ["failed", "stalled"].includes(s?.state);
        return html`<g class=${`node ${rest === o.name ? "on" : ""}`} transform=${`translate(${n.x - W / 2},${n.y - H / 2})`} tabindex="0" role="button"
          aria-label=${`${o.kind} ${o.name}${s ? `, ${s.state}` : ""}`} onClick=${() => open(o.name)} onKeyDown=${(e) => { if (e.key === "Enter" || e.key === " ") { e.preventDefault(); open(o.name); } }}>
          <rect class="box" width=${W} height=${H} rx="12" /><rect width="6" height=${H - 20} x="8" y="10" rx="3" style=${{ fill: `var(${bad ? "--bad" : STRIPES[o.kind] ?? "--c0"})`, stroke: "none" }} />
          <text class="k" x="24" y="20">${o.kind}${s ? ` · ${s.state}` : ""}</text><title>${o.name}</title><text class="t" x="24" y="39">${fitted(o.name, W - 36, NAMED)}</text>
          <text class="m" x="24" y="57">${[v === null || v === undefined ? "" : rate(v), lag === null || lag === undefined ? "" : `lag ${span(lag)}`].filter(Boolean).join(" · ") || (o.kind === "view" ? "not stored" : "")}</text></g>`; })}
    </svg>` : html`<p class="empty">There is nothing yet: CREATE SOURCE or CREATE TABLE on the <a href="#/sql">SQL page</a>.</p>`}</section>
  ${rest && html`<${Inside} name=${rest} kind=${data.objects.find((o) => o.name === rest)?.kind} now=${now} />`}</div>`;
}

const EXPLAINED = ["view", "materialized view", "index"];
const quoted = (name) => name.split(".").map((p) => `"${p.replaceAll('"', '""')}"`).join(".");

// Where a view's ticks run; on Spark a time is of all tasks together.
const PLACES = [["driver", "on the driver"], ["spark", "on Spark"]];

// What an operator takes in a tick, and how much of the slowest one that is.
function Spent({ millis, most }) {
  if (millis === undefined) return "–";
  return html`${millis < 1 ? `${(millis * 1000).toFixed(0)} µs` : span(millis)}<svg class="bar" viewBox="0 0 48 5" width="48" height="5" aria-hidden="true"><rect class="all" width="48" height="5" rx="2.5" /><rect class="part" width=${Math.max(millis > 0 ? 2.5 : 0, most > 0 ? (48 * millis) / most : 0)} height="5" rx="2.5" /></svg>`;
}

function Inside({ name, kind, now }) {
  const [text, tell] = useState({});
  const found = usePoll(() => get(`/api/object?name=${encodeURIComponent(name)}`).catch(() => null), 5000, [name]).data;
  const data = found?.name === name ? found : null; // not of the one before
  useEffect(() => {
    let live = true;
    const add = (more) => live && tell((t) => ({ ...t, ...more }));
    tell({});
    rows("SELECT sql, owner FROM reclock.objects WHERE name = $1", [name]).then(([o]) => add({ sql: o?.sql, owner: o?.owner }), (error) => add({ error }));
    if (EXPLAINED.includes(kind)) sql(`EXPLAIN ${kind.toUpperCase()} ${quoted(name)}`).then((a) => add({ plan: a.rows.map((r) => r[0]).join("\n") }), () => {});
    return () => { live = false; };
  }, [name, kind]);
  const ran = PLACES.filter(([place]) => data?.ticks?.[place] > 0);
  const slowest = Object.fromEntries(ran.map(([place]) => [place, Math.max(...(data.operators ?? []).map((x) => x.millis[place] ?? 0))]));
  const o = now.objects.find((x) => x.name === name), s = [...now.sources, ...now.sinks].find((x) => x.name === name), size = now.sizes[name];
  return html`<aside class="card inside" aria-label=${name}><div><div class="row"><h2 class="grow">${name}</h2><a class="button small" href="#/pipeline" aria-label="Close">✕</a></div>
    <p class="row"><span class="pill">${kind ?? "unknown"}</span>${s && html`<${Pill} state=${s.state} />`}${text.owner && html`<span class="soft small">of ${text.owner}</span>`}</p>
    ${s?.error && html`<${Problem} error=${{ message: s.error.message ?? s.error.code, ...s.error }} />`}
    <p class="small">${o && html`lag ${span(o.lag_ms)} · history ${o.since !== null && o.upper !== null ? span(o.upper - o.since) : "–"} · ${number(o.changed)} rows changed`}${size && html` · ${number(size.records)} updates, ${bytes(size.bytes)}, ${size.runs} runs`}</p>
    ${data?.operators?.length > 0 && html`<h3>Operators</h3><${Table} caption=${`Operators of ${name}`} rows=${data.operators.map((x) => ({ ...x, key: x.step }))} columns=${[
      { title: "operator", of: (x) => html`<span class="mono">${x.step}</span> ${x.operator}` }, { title: "records", right: true, of: (x) => (x.keeps === false ? "–" : number(x.records)) },
      { title: "bytes", right: true, of: (x) => (x.keeps === false ? "–" : bytes(x.bytes)) },
      ...ran.map(([place, where]) => ({ title: ran.length > 1 ? where : "a tick", right: true, of: (x) => html`<${Spent} millis=${x.millis[place]} most=${slowest[place]} />` }))]} />
      <p class="small soft">${ran.length > 0 ? `Where it runs: ${ran.map(([place, where]) => `${number(data.ticks[place])} ${data.ticks[place] === 1 ? "tick" : "ticks"} ${where}`).join(", ")}; times are averages of them${data.ticks.spark ? ", on Spark of all tasks together" : ""}.` : "No tick has run since the views of its timeline last changed."}${now.spark_ui && html` <a href=${now.spark_ui} rel="noreferrer">Spark’s pages</a>`}</p>`}
    </div><div>${text.sql && html`<h3>SQL</h3><${Code} text=${text.sql} />`}${text.plan && html`<h3>EXPLAIN</h3><pre tabindex="0" class="plan">${text.plan}</pre>`}<${Problem} error=${text.error} /></div></aside>`;
}
