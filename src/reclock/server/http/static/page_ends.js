// Where data comes from, and where it goes.
import { useEffect, useState } from "./vendor/core.js";
import { rows } from "./api.js";
import { Code } from "./code.js";
import { bytes, exact, html, lsn, moment, number, Pill, Problem, rate, span, Table, usePoll } from "./parts.js";

// A database has no offsets: its positions are places in its log, and what is between two of them is bytes.
const place = (n, log) => (log ? lsn(n) : exact(n));
const between = (end, bound, log) => (end === null || (log && !bound) ? "–" : (log ? bytes : exact)(Math.max(0, end - bound)));

export function Sources({ now, speed }) {
  const wrong = usePoll(async () => ({ errors: await rows("SELECT object, code, message, detail FROM reclock.errors WHERE object IS NOT NULL LIMIT 100"), letters: await rows('SELECT source, number, "timestamp", "partition", "offset", code, reason, "key", value FROM reclock.dead_letters ORDER BY number DESC LIMIT 100') }), 5000);
  if (!now) return html`<h1>Sources</h1>`;
  const named = new Set(now.sources.map((s) => s.name));
  return html`<div class="head"><div><h1>Sources</h1><p>What is read, how far, and what could not be.</p></div></div>
  <${Table} caption="Sources" rows=${now.sources} empty="There is no source." columns=${[
    { title: "source", of: (s) => s.name }, { title: "state", of: (s) => html`<${Pill} state=${s.state} />` }, { title: "rate", right: true, of: (s) => rate(speed("records", s.name)) },
    { title: "records", right: true, of: (s) => number(s.records) }, { title: "bytes", right: true, of: (s) => bytes(s.bytes) }, { title: "errors", right: true, of: (s) => number(s.errors) },
    { title: "waiting", right: true, of: (s) => (s.log ? bytes(s.lag_bytes) : number(s.lag_records)) }, { title: "lag", right: true, of: (s) => span(s.lag_ms) }, { title: "bindings", right: true, of: (s) => number(s.bindings) }]} />
  ${now.sources.filter((s) => s.error).map((s) => html`<${Problem} error=${{ message: `${s.name}: ${s.error.message ?? s.state}`, ...s.error, message: `${s.name}: ${s.error.message ?? s.state}` }} />`)}
  ${now.sources.filter((s) => s.said && !s.error).map((s) => html`<p class="small"><strong>${s.name}:</strong> ${s.said}</p>`)}
  <h2 class="sub">Offsets of partitions</h2><${Table} caption="Partitions" rows=${now.sources.flatMap((s) => s.partitions.map(([partition, bound, end]) => ({ source: s.name, partition: s.log ? "log" : partition, bound, end, log: s.log, key: `${s.name} ${partition}` })))} columns=${[
    { title: "source", of: (p) => p.source }, { title: "partition", of: (p) => p.partition }, { title: "bound up to", right: true, of: (p) => place(p.bound, p.log) }, { title: "ends at", right: true, of: (p) => place(p.end, p.log) },
    { title: "waiting", right: true, of: (p) => between(p.end, p.bound, p.log) }]} />
  <h2 class="sub">Errors</h2><${Problem} error=${wrong.error} /><${Table} caption="Errors" empty="None." rows=${(wrong.data?.errors ?? []).filter((e) => named.has(e.object)).map((e, n) => ({ ...e, key: n }))} columns=${[
    { title: "source", of: (e) => e.object }, { title: "code", of: (e) => html`<code>${e.code}</code>` }, { title: "what", wide: true, of: (e) => e.message }, { title: "detail", wide: true, of: (e) => e.detail }]} />
  <h2 class="sub">Records that were skipped</h2><${Table} caption="Records that were skipped" empty="None." rows=${(wrong.data?.letters ?? []).map((l) => ({ ...l, its: l.key, key: `${l.source} ${l.number}` }))} columns=${[
    { title: "source", of: (l) => l.source }, { title: "at", of: (l) => moment(l.timestamp) }, { title: "partition", of: (l) => l.partition }, { title: "offset", right: true, of: (l) => exact(l.offset) },
    { title: "code", of: (l) => html`<code>${l.code}</code>` }, { title: "reason", wide: true, of: (l) => l.reason }, { title: "key", of: (l) => readable(l.its) }, { title: "value", wide: true, of: (l) => readable(l.value) }]} />`;
}

function readable(hex) {
  if (hex === null) return "–";
  const found = new Uint8Array((hex.slice(2).match(/../g) ?? []).map((b) => parseInt(b, 16)));
  return html`<code>${new TextDecoder().decode(found).slice(0, 300)}</code>`;
}

export function Sinks({ now, speed }) {
  const [told, tell] = useState({});
  useEffect(() => { rows("SELECT name, sql FROM reclock.objects WHERE kind = 'sink'").then((found) => tell(Object.fromEntries(found.map((s) => [s.name, s.sql]))), () => {}); }, []);
  const { data, error } = usePoll(() => rows("SELECT sink, detail, last_error FROM reclock.sink_status"), 5000);
  if (!now) return html`<h1>Sinks</h1>`;
  return html`<div class="head"><div><h1>Sinks</h1><p>What is written, in whole times, once. The frontier is in the log itself, with the data.</p></div></div>
  <${Table} caption="Sinks" rows=${now.sinks} empty="There is no sink." columns=${[
    { title: "sink", of: (s) => s.name }, { title: "state", of: (s) => html`<${Pill} state=${s.state} />` }, { title: "rate", right: true, of: (s) => rate(speed("messages", s.name)) },
    { title: "messages", right: true, of: (s) => number(s.messages) }, { title: "bytes", right: true, of: (s) => bytes(s.bytes) }, { title: "transactions", right: true, of: (s) => number(s.transactions) },
    { title: "in flight", right: true, of: (s) => number(s.in_flight) }, { title: "retries", right: true, of: (s) => number(s.retries) }, { title: "committed before", right: true, of: (s) => moment(s.frontier) }, { title: "lag", right: true, of: (s) => span(s.lag_ms) }]} />
  <${Problem} error=${error} />
  ${now.sinks.map((s) => { const d = data?.find((x) => x.sink === s.name); return html`<section class="card"><h2>${s.name} <${Pill} state=${s.state} /></h2>
    <p class="small">${s.topic && html`Writes to <code>${s.topic}</code>. `}${s.consistency && html`Its consistency record, in <code>${s.consistency}</code>, says that all before ${moment(s.frontier)} is committed; it was written in the transaction of the data.`}</p>
    ${s.recent.length > 0 && html`<h3>Last transactions</h3><${Table} caption=${`Last transactions of ${s.name}`} rows=${s.recent.map(([at, upto, messages, size]) => ({ at, upto, messages, size, key: upto })).reverse()} columns=${[
      { title: "committed at", of: (x) => moment(x.at) }, { title: "all before", right: true, of: (x) => moment(x.upto) }, { title: "messages", right: true, of: (x) => number(x.messages) }, { title: "bytes", right: true, of: (x) => bytes(x.size) }]} />`}
    ${s.error ? html`<${Problem} error=${{ ...s.error, message: s.error.message ?? `${s.state}; a superuser sees why` }} />` : d?.detail && html`<p>${d.detail}</p>`}${d?.last_error && html`<p class="small"><strong>Last error:</strong> ${d.last_error}</p>`}${told[s.name] && html`<h3>SQL</h3><${Code} text=${told[s.name]} />`}</section>`; })}`;
}
