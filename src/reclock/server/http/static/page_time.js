// The remap as a picture: which offsets of each partition became visible when, what is kept, what is
// complete, and who holds what. Bindings that the database has folded since are remembered, paler.
import { useRef, useState } from "./vendor/core.js";
import { get } from "./api.js";
import { clock, html, isTime, moment, number, Problem, round, span, usePoll, useWidth } from "./parts.js";

const H = 300, LEFT = 66, RIGHT = 18, TOP = 26, BOTTOM = 30, HELD = 13, MINUTES = 3;

export function Time({ now }) {
  const kept = useRef(new Map()), next = useRef(0);
  const { data, error } = usePoll(async () => {
    const found = await get(`/api/time?since=${next.current}`); // what is new: a binding never changes
    next.current = found.next;
    const gone = new Set(kept.current.keys());
    for (const { id, name, steps } of found.sources) {
      gone.delete(id);
      if (!steps.length) continue;
      const source = kept.current.get(id) ?? kept.current.set(id, { name, parts: new Map() }).get(id);
      source.name = name;
      for (const [time, offsets] of steps) for (const [part, offset] of Object.entries(offsets)) {
        const partition = source.parts.get(part) ?? source.parts.set(part, new Map()).get(part);
        partition.set(time, offset);
      }
    }
    for (const id of gone) kept.current.delete(id);
    return { holds: found.holds };
  }, 2000);
  const frontiers = now?.objects.map((o) => ({ ...o, object: o.name })).sort((a, b) => a.object.localeCompare(b.object));
  if (!data || !frontiers) return html`<h1>Time</h1><${Problem} error=${error} />`;
  const sources = [...kept.current.values()].filter((s) => frontiers.some((f) => f.object === s.name)).sort((a, b) => a.name.localeCompare(b.name));
  return html`<div class="head"><div><h1>Time</h1><p>Which offsets of a source became visible at which time: decided once, and the same after every restart.</p></div></div><${Problem} error=${error} />
    ${sources.length === 0 && html`<p class="empty">There is no source yet. Tables get their times when they are written.</p>`}
    ${sources.map(({ name, parts }) => html`<${Remap} key=${name} name=${name} partitions=${parts} frontier=${frontiers.find((f) => f.object === name)} holds=${data.holds.filter((x) => x.object === name)} />`)}
    <section class="card"><h2>What is kept of every object</h2><${Ranges} frontiers=${frontiers} holds=${data.holds} /></section>`;
}

// Times that a clock shows between two, about so many: for axes; of other timelines, round numbers.
const STEPS = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 1800, 3600, 7200, 21600, 86400].map((s) => 1000 * s);
function ticks(low, high, count) {
  if (!isTime(high) || high - low < 2000) return round(low, high, count);
  const step = STEPS.find((s) => (high - low) / s <= count) ?? STEPS.at(-1), zone = new Date(high).getTimezoneOffset() * 60000, found = [];
  for (let at = Math.ceil((low - zone) / step) * step + zone; at <= high; at += step) found.push(at);
  return found;
}

function Remap({ name, partitions, frontier, holds }) {
  const [at, point] = useState(null), [place, W] = useWidth();
  if (!frontier) return null;
  const upper = frontier.upper, lines = [...partitions].sort(([a], [b]) => a.localeCompare(b, undefined, { numeric: true }));
  const all = lines.flatMap(([, found]) => [...found.keys()]);
  const end = upper ?? Math.max(...all);
  const limit = isTime(end) ? end - MINUTES * 60000 : -Infinity;
  for (const [, found] of lines) for (const t of [...found.keys()].sort((a, b) => a - b).slice(0, -1)) if (t < limit) found.delete(t);
  const times = lines.flatMap(([, found]) => [...found.keys()]).filter((t) => t >= limit);
  const least = Math.min(...times, frontier.since ?? end, ...holds.map((x) => x.since ?? end));
  const low = Math.max(limit, least - (end - least) * 0.04), high = end + Math.max(1, (end - low) * 0.06);
  const offsets = lines.flatMap(([, found]) => [...found].filter(([t]) => t >= low).map(([, o]) => o));
  const top = Math.max(1, ...lines.map(([, f]) => Math.max(0, ...[...f].filter(([t]) => t <= end).map(([, o]) => o)))), under = Math.min(top - 1, ...offsets);
  const x = (t) => LEFT + ((t - low) / (high - low || 1)) * (W - LEFT - RIGHT);
  const y = (o) => H - BOTTOM - ((o - under) / (top - under || 1)) * (H - TOP - BOTTOM);
  const stairs = (found) => {
    const steps = [...found].filter(([t]) => t <= end).sort((a, b) => a[0] - b[0]);
    let d = "", before = null;
    for (const [t, o] of steps) { const u = Math.max(low, t); d += before === null ? `M${x(u)},${y(Math.max(under, o))}` : `H${x(u)}V${y(o)}`; before = o; }
    return { d: `${d}H${x(end)}`, last: before };
  };
  const since = Math.max(low, frontier.since ?? end);
  const offset = (found, t) => [...found].filter(([u]) => u <= t).sort((a, b) => a[0] - b[0]).at(-1)?.[1];
  const seen = at && lines.map(([p, found]) => [p, offset(found, at)]);
  const step = (e) => { const by = { ArrowLeft: -1, ArrowRight: 1 }[e.key]; if (!by && e.key !== "Escape") return; e.preventDefault(); point(by ? Math.min(end - 1, Math.max(low + 1, Math.floor((at ?? end) + (by * (end - low)) / 60))) : null); };
  // Who holds the same time is written once.
  const groups = new Map();
  for (const held of holds) if (held.since !== null) groups.set(held.since, [...(groups.get(held.since) ?? []), held.holder]);
  const marks = [...groups].sort((a, b) => a[0] - b[0]).slice(0, 6), tall = H + marks.length * HELD + (marks.length ? 8 : 0);
  return html`<section class="card" ref=${place}><div class="row"><h2 class="grow">${name}</h2><span class="small soft">since ${moment(frontier.since)} · upper ${moment(upper)} · lag ${span(frontier.lag_ms)}</span></div>
  <svg viewBox=${`0 0 ${W} ${tall}`} width=${W} height=${tall} class="remap" role="img" tabindex="0" onKeyDown=${step} onBlur=${() => point(null)} aria-label=${`${name}: ${lines.length} partitions; ${lines.map(([p, f]) => `${p} up to offset ${Math.max(...f.values())}`).join(", ")}; readable from ${moment(frontier.since)} to ${moment(upper)}; ${holds.length} holds`}
    onPointerMove=${(e) => { const box = e.currentTarget.getBoundingClientRect(); const t = low + ((((e.clientX - box.left) / box.width) * W - LEFT) / (W - LEFT - RIGHT)) * (high - low); point(t > low && t < end ? Math.floor(t) : null); }} onPointerLeave=${() => point(null)}>
    <defs><pattern id=${`h-${name}`} width="8" height="8" patternUnits="userSpaceOnUse" patternTransform="rotate(45)"><path d="M0 0V8" stroke="var(--line)" stroke-width="5" /></pattern>
      ${lines.map((_, n) => html`<linearGradient id=${`g-${name}-${n}`} x1="0" y1="0" x2="0" y2="1"><stop offset="0" style=${{ stopColor: `var(--c${n % 8})`, stopOpacity: lines.length > 3 ? 0.1 : 0.28 }} /><stop offset="1" style=${{ stopColor: `var(--c${n % 8})`, stopOpacity: 0 }} /></linearGradient>`)}</defs>
    ${round(under, top, 5).map((o) => html`<line class="axis" x1=${LEFT} x2=${W - RIGHT} y1=${y(o)} y2=${y(o)} /><text class="tick" x=${LEFT - 8} y=${y(o) + 4} text-anchor="end">${number(Math.round(o))}</text>`)}
    ${ticks(low, high, W > 600 ? 9 : 4).map((t) => html`<line class="axis" x1=${x(t)} x2=${x(t)} y1=${TOP} y2=${H - BOTTOM + 5} opacity=".5" />${x(t) > LEFT + 8 && x(t) < W - RIGHT - 22 ? html`<text class="tick" x=${x(t)} y=${H - BOTTOM + 18} text-anchor="middle">${isTime(t) ? clock(t) : number(Math.round(t))}</text>` : ""}`)}
    <rect x=${LEFT} y=${TOP} width=${Math.max(0, x(since) - LEFT)} height=${H - TOP - BOTTOM} style=${{ fill: `url(#h-${CSS.escape(name)})` }} opacity=".7" />
    <rect x=${x(end)} y=${TOP} width=${Math.max(0, W - RIGHT - x(end))} height=${H - TOP - BOTTOM} style=${{ fill: `url(#h-${CSS.escape(name)})` }} opacity=".7" />
    ${lines.map(([p, found], n) => { const s = stairs(found); const begin = s.d.slice(1).split(/[,HV]/)[0]; return html`<path d=${`${s.d}V${H - BOTTOM}H${begin}Z`} style=${{ fill: `url(#g-${CSS.escape(name)}-${n})` }} /><path d=${s.d} fill="none" style=${{ stroke: `var(--c${n % 8})` }} stroke-width="2.5" stroke-linejoin="round" /><circle cx=${x(end)} cy=${y(s.last)} r="4" style=${{ fill: `var(--c${n % 8})` }} />`; })}
    <g><line x1=${x(since)} x2=${x(since)} y1=${TOP - 6} y2=${H - BOTTOM} style=${{ stroke: "var(--warn)" }} stroke-width="2" /><text x=${x(since) + (x(since) > W * 0.8 ? -5 : 5)} text-anchor=${x(since) > W * 0.8 ? "end" : "start"} y=${TOP - 9} style=${{ fill: "var(--warn)" }}>since</text>
      <line x1=${x(end)} x2=${x(end)} y1=${TOP - 6} y2=${H - BOTTOM} style=${{ stroke: "var(--ok)" }} stroke-width="2" /><text x=${W - RIGHT} y=${TOP - 9} text-anchor="end" style=${{ fill: "var(--ok)" }}>upper</text></g>
    ${marks.map(([held, who], n) => { const u = x(Math.max(low, held)), left = u > W * 0.6, names = [...new Set(who)].join(", "), most = Math.floor((left ? u - LEFT : W - u) / 6.4);
      return html`<line x1=${u} x2=${u} y1=${TOP} y2=${H - 4 + n * HELD} style=${{ stroke: "var(--c4)" }} stroke-dasharray="2 4" opacity=".8" /><g transform=${`translate(${u},${H + n * HELD})`}><path d="M0,-5 l5,5 l-5,5 l-5,-5z" style=${{ fill: "var(--c4)" }} /><text class="tick" x=${left ? -9 : 9} y="4" text-anchor=${left ? "end" : "start"}>${names.length > most ? names.slice(0, Math.max(6, most - 1)) + "…" : names}</text></g>`; })}
    ${at && html`<g><line x1=${x(at)} x2=${x(at)} y1=${TOP} y2=${H - BOTTOM} style=${{ stroke: "var(--ink)" }} stroke-dasharray="3 4" opacity=".6" />
      <text x=${Math.min(Math.max(x(at), LEFT + 40), W - RIGHT - 40)} y=${TOP - 9} text-anchor="middle" class="at">${moment(at)}</text>
      ${lines.slice(0, 12).map(([p, found], n) => { const o = offset(found, at); if (o === undefined) return ""; const left = x(at) > W * 0.7;
        return html`<circle cx=${x(at)} cy=${y(Math.max(under, o))} r="4.5" style=${{ fill: `var(--c${n % 8})`, stroke: "var(--card)" }} stroke-width="2" /><text class="told" x=${x(at) + (left ? -9 : 9)} y=${y(Math.max(under, o)) - 7} text-anchor=${left ? "end" : "start"}>${number(o)}</text>`; })}</g>`}
  </svg>
  <p class="small" aria-live=${at ? "polite" : "off"}>${(seen ?? lines.map(([p, f]) => [p, Math.max(...f.values())])).map(([p, o], n) => html`<span class="key"><i style=${{ background: `var(--c${n % 8})` }}></i>${/^\d+$/.test(p) ? `partition ${p}` : p}: ${o === undefined ? "nothing" : number(o)}</span>`)}<span class="soft">${at ? `visible at ${moment(at)}` : "visible now; point at a time, or use the arrow keys"}</span></p></section>`;
}

function Ranges({ frontiers, holds }) {
  const [place, W] = useWidth();
  const found = frontiers.filter((f) => f.since !== null && f.upper !== null && f.lag_ms !== null);
  if (!found.length) return html`<p class="empty" ref=${place}>Nothing yet.</p>`;
  const end = Math.max(...found.map((f) => f.upper)), low = Math.min(...found.map((f) => f.since)), width = Math.max(1, end - low);
  const side = Math.min(240, Math.round(W * 0.36)), most = Math.floor(side / 7.4);
  const x = (t) => side + (Math.max(0, t - low) / width) * (W - side - 12);
  return html`<div ref=${place}><svg viewBox=${`0 0 ${W} ${found.length * 28 + 24}`} width=${W} height=${found.length * 28 + 24} role="img" aria-label=${found.map((f) => `${f.object}: ${span(f.upper - f.since)}`).join(", ")}>
    ${found.map((f, n) => { const y = n * 28 + 6; const mine = holds.filter((h) => h.object === f.object && h.since !== null);
      return html`<text x=${side - 10} y=${y + 13} text-anchor="end">${f.object.length > most ? f.object.slice(0, most - 1) + "…" : f.object}</text><rect x=${x(f.since)} y=${y} width=${Math.max(3, x(f.upper) - x(f.since))} height="16" rx="5" style=${{ fill: "var(--accent)" }} opacity=".75" />
        ${mine.map((h) => html`<path d=${`M${x(h.since)},${y + 3} l5,5 l-5,5 l-5,-5z`} style=${{ fill: "var(--c4)", stroke: "var(--card)" }}><title>${h.holder} holds from ${moment(h.since)}</title></path>`)}`; })}
    <text class="tick" x=${side} y=${found.length * 28 + 20}>${moment(low)}</text><text class="tick" x=${W - 12} y=${found.length * 28 + 20} text-anchor="end">${moment(end)}</text></svg></div>
    <p class="small soft">A bar is what can be read, from since to upper. <span class="key"><i style=${{ background: "var(--c4)" }}></i>held from there on</span></p>
    ${holds.length > 0 && html`<div class="scroll" tabindex="0" role="region" aria-label="Holds"><table aria-label="Holds"><thead><tr><th scope="col">object</th><th scope="col">holder</th><th scope="col" class="n">held from</th></tr></thead><tbody>${holds.map((h) => html`<tr><td>${h.object}</td><td>${h.holder}</td><td class="n">${moment(h.since)}</td></tr>`)}</tbody></table></div>`}`;
}
