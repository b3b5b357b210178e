// Is all well; the last hour; what failed and what to do.
import { bytes, Chart, html, number, rate, rates, span } from "./parts.js";

const sum = (found) => Object.values(found).reduce((a, b) => a + b, 0);

// Those that are furthest behind, in the order that they always have: more lines than eight are a carpet.
const most = (sources, of) => { const found = new Set([...sources].sort((a, b) => (b[of] ?? 0) - (a[of] ?? 0)).slice(0, 8)); return sources.length <= 8 ? sources : sources.filter((x) => found.has(x)); };

const count = (n, what) => `${n} ${what}${n === 1 ? "" : "s"}`;

// What is not well, and what to do; an object can be looked into.
function Reason({ reason: r, known }) {
  const said = [r.message, r.detail].filter(Boolean).join(": ") || (r.code && "A superuser sees what went wrong.");
  return html`<section class="card problem"><h2>${r.kind} ${known ? html`<a href=${`#/pipeline/${encodeURIComponent(r.name)}`}>${r.name}</a>` : r.name} <span class="pill bad">${r.state}</span></h2>
    ${said && html`<p>${said} ${r.code && html`<code>${r.code}</code>`}</p>`}
    ${r.hint && html`<p class="hint"><strong>What to do:</strong> ${r.hint}</p>`}</section>`;
}

export function Overview({ now, samples, theme }) {
  if (!now) return html`<h1>Overview</h1>`;
  const times = samples.map((s) => s.t / 1000);
  const lags = [...new Set(samples.flatMap((s) => Object.keys(s.lag)))];
  const read = rates(samples, (s) => s.read), changed = rates(samples, (s) => s.changed), sent = rates(samples, (s) => s.written);
  const ticks = samples.map((s, at) => at && s.ticks > samples[at - 1].ticks ? (1000 * (s.tick_seconds - samples[at - 1].tick_seconds)) / (s.ticks - samples[at - 1].ticks) : null);
  const lag = Math.max(0, ...now.timelines.map((t) => t.lag_ms ?? 0));
  const logs = now.sources.filter((x) => x.log), others = now.sources.filter((x) => !x.log);
  const stored = sum(Object.fromEntries(Object.entries(now.sizes).map(([k, v]) => [k, v.bytes])));
  return html`<div class="head"><div><h1>Overview</h1><p>reclock ${now.version}, a tick every ${span(now.interval_ms)}</p></div>${now.spark_ui && html`<a class="button" href=${now.spark_ui} rel="noreferrer">Spark’s pages</a>`}</div>
  <div class=${`well ${now.ready ? "ok" : "bad"}`} role="status">
    <svg viewBox="0 0 24 24" fill="none" stroke="currentColor" stroke-width="2.4" stroke-linecap="round" stroke-linejoin="round" aria-hidden="true"><circle cx="12" cy="12" r="10" /><path d=${now.ready ? "M7.5 12.5l3 3 6-7" : "M12 7v6m0 3.5v.1"} /></svg>
    <span>${now.ready ? "All is well: every timeline ticks, every source and sink runs." : `${now.reasons.length} ${now.reasons.length === 1 ? "thing is" : "things are"} not well.`}</span></div>
  ${now.reasons.map((r) => html`<${Reason} key=${`${r.kind} ${r.name}`} reason=${r} known=${[...now.objects, ...now.sinks].some((o) => o.name === r.name)} />`)}
  <dl class="tiles">
    <div class="tile"><dt>Lag</dt><dd>${span(lag)}<small>behind the clock</small></dd></div>
    <div class="tile"><dt>Records read</dt><dd>${rate(read.at(-1))}<small>${number(samples.at(-1)?.read ?? 0)} in all</small></dd></div>
    <div class="tile"><dt>Rows changed</dt><dd>${rate(changed.at(-1))}<small>${number(samples.at(-1)?.changed ?? 0)} in all</small></dd></div>
    <div class="tile"><dt>Tick</dt><dd>${span(ticks.findLast((t) => t !== null) ?? null)}<small>on average</small></dd></div>
    <div class="tile"><dt>Stored</dt><dd>${bytes(stored)}<small>${now.merges.running ? "a merge runs" : `${number(now.merges.done)} merges`}</small></dd></div>
    <div class="tile"><dt>Disk free</dt><dd>${now.disk ? bytes(now.disk.free) : "–"}<small>${now.disk ? `of ${bytes(now.disk.size)}` : "files are elsewhere"}</small></dd></div>
    <div class="tile"><dt>Objects</dt><dd>${number(now.objects.length)}<small>${count(now.sources.length, "source")}, ${count(now.sinks.length, "sink")}</small></dd></div>
  </dl>
  <div class="grid">
    <${Chart} title="Lag of timelines" theme=${theme} times=${times} format=${span} series=${lags.map((name) => ({ name, values: samples.map((s) => s.lag[name] ?? null) }))} />
    <${Chart} title="Throughput" theme=${theme} times=${times} format=${rate} series=${[{ name: "records read", values: read }, { name: "rows changed", values: changed }, { name: "messages written", values: sent }]} />
    <${Chart} title="Time of a tick" theme=${theme} times=${times} format=${span} series=${[{ name: "average", values: ticks }]} />
    ${(others.length > 0 || !logs.length) && html`<${Chart} title="Records that wait, by source" theme=${theme} times=${times} format=${number} series=${most(others, "lag_records").map((x) => ({ name: x.name, values: samples.map((s) => s.behind[x.name] ?? null) }))} />`}
    ${logs.length > 0 && html`<${Chart} title="Log that waits, by database" theme=${theme} times=${times} format=${bytes} series=${most(logs, "lag_bytes").map((x) => ({ name: x.name, values: samples.map((s) => s.log?.[x.name] ?? null) }))} />`}
  </div>`;
}
