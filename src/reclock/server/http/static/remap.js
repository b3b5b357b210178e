// The remap of a source as a picture, and what is kept of every object.
import { useMemo, useState } from "./vendor/core.js";
import { clock, exact, fitted, html, isTime, lsn, moment, number, round, span, STRIPES, useWidth } from "./parts.js";

const H = 316, TOP = 34, BOTTOM = 32, LANE = 18, MINUTES = 3, LABELLED = 10;
const LETTER = 6.4; // how wide a small letter is, about

// Times that a clock shows between two, about so many: for axes; of other timelines, round numbers.
const STEPS = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 1800, 3600, 7200, 21600, 86400].map((s) => 1000 * s);
function ticks(low, high, count) {
  if (!isTime(high) || high - low < 2000) return round(low, high, count);
  const step = STEPS.find((s) => (high - low) / s <= count) ?? STEPS.at(-1), zone = new Date(high).getTimezoneOffset() * 60000, found = [];
  for (let at = Math.ceil((low - zone) / step) * step + zone; at <= high; at += step) found.push(at);
  return found;
}
const shownTime = (t) => (isTime(t) ? clock(t) : number(Math.round(t)));
const cut = (text, most) => (text.length > most ? `${text.slice(0, Math.max(4, most - 1))}…` : text);
const partition = (name) => (/^\d+$/.test(name) ? `partition ${name}` : name);
// Round offsets as short as they can be and still differ.
const brief = (found) => { const short = found.map((o) => number(Math.round(o))); return new Set(short).size === short.length ? short : found.map((o) => exact(Math.round(o))); };

// The steps of each partition, sorted, and the ranges of the axes. Of what is long folded nothing is kept here either.
function measured(partitions, frontier, holds) {
  const lines = [...partitions].sort(([a], [b]) => a.localeCompare(b, undefined, { numeric: true }))
    .map(([name, found]) => ({ name, found, steps: [...found].sort((a, b) => a[0] - b[0]) })).filter((line) => line.steps.length);
  const end = frontier.upper ?? Math.max(...lines.map((line) => line.steps.at(-1)[0])), limit = isTime(end) ? end - MINUTES * 60000 : -Infinity;
  for (const line of lines) {
    const first = Math.max(0, line.steps.findLastIndex(([t]) => t < limit));
    for (const [t] of line.steps.splice(0, first)) line.found.delete(t);
  }
  const times = [...new Set(lines.flatMap((line) => line.steps.map(([t]) => t)))].filter((t) => t >= limit && t <= end);
  const least = Math.min(...times, frontier.since ?? end, end - 1, ...holds.map((x) => x.since ?? end));
  const low = Math.max(limit, least - (end - least) * 0.03);
  const last = (line) => line.steps.findLast(([t]) => t <= end)?.[1] ?? 0;
  const offsets = lines.flatMap((line) => line.steps.filter(([t]) => t >= low && t <= end).map(([, o]) => o));
  const top = Math.max(1, ...lines.map(last)), under = Math.max(0, Math.min(top - 1, ...offsets));
  return { lines, times, low, end, high: end + Math.max(1, (end - low) * 0.025), since: Math.max(low, frontier.since ?? end), top, under, last };
}

// Who holds the same time is written once.
function held(holds) {
  const groups = new Map();
  for (const h of holds) if (h.since !== null) groups.set(h.since, [...(groups.get(h.since) ?? []), h.holder]);
  return [...groups].sort((a, b) => a[0] - b[0]).slice(0, 6);
}

// Labels at given heights, moved apart.
function apart(labels, least, bottom) {
  const sorted = [...labels].sort((a, b) => a.y - b.y);
  sorted.forEach((label, n) => { if (n) label.y = Math.max(label.y, sorted[n - 1].y + least); });
  for (let n = sorted.length - 1, most = bottom; n >= 0; n -= 1, most = sorted[n + 1].y - least) sorted[n].y = Math.min(sorted[n].y, most);
  return sorted;
}

let drawn = 0;
export function Remap({ name, log, partitions, frontier, holds }) {
  const [at, point] = useState(null), [place, W] = useWidth(), [id] = useState(() => `r${(drawn += 1)}`);
  const size = [...partitions.values()].reduce((sum, found) => sum + found.size, 0);
  const m = useMemo(() => (frontier && size ? measured(partitions, frontier, holds) : null), [partitions, size, frontier?.upper, frontier?.since, holds.length]);
  if (!frontier) return null;
  if (!m) return html`<section class="card" ref=${place}><h2>${name}</h2><p class="soft">Nothing of it is bound yet.</p></section>`;
  const { lines, low, high, end, since, top, under, last } = m, shown = log ? lsn : exact, part = (of) => (log ? "log" : partition(of));
  const levels = round(under, top, 5), words = log ? levels.map((o) => lsn(Math.round(o))) : brief(levels), longest = Math.max(...lines.map((l) => shown(last(l)).length));
  const labelled = lines.length <= LABELLED && (W >= 480 || longest < 9), LEFT = 12 + 7 * Math.max(1, ...words.map((w) => w.length)), RIGHT = labelled ? 16 + 7.4 * longest : 14;
  const base = H - BOTTOM, x = (t) => LEFT + ((t - low) / (high - low)) * (W - LEFT - RIGHT), y = (o) => base - ((Math.max(under, o) - under) / (top - under)) * (base - TOP - 6);
  const colour = (n) => `var(--c${n % 8})`;
  const stairs = (steps) => {
    let d = "";
    for (const [t, o] of steps) if (t <= end) d += d ? `H${x(t).toFixed(1)}V${y(o).toFixed(1)}` : `M${x(Math.max(low, t)).toFixed(1)},${y(o).toFixed(1)}`;
    return d && `${d}H${x(end).toFixed(1)}`;
  };
  const offset = (line, t) => line.steps.findLast(([u]) => u <= t)?.[1];
  const step = (e) => { const by = { ArrowLeft: -1, ArrowRight: 1 }[e.key]; if (!by && e.key !== "Escape") return; e.preventDefault(); point(by ? Math.min(end - 1, Math.max(Math.ceil(low), Math.floor((at ?? end) + (by * (end - low)) / 60))) : null); };
  const pointed = (e) => { const box = e.currentTarget.getBoundingClientRect(), t = low + ((((e.clientX - box.left) / box.width) * W - LEFT) / (W - LEFT - RIGHT)) * (high - low); point(t > low && t < end ? Math.floor(t) : null); };
  const marks = held(holds), tall = H + (marks.length ? marks.length * LANE + 4 : 0), ends = lines.map((line, n) => ({ n, y: y(last(line)), text: shown(last(line)) }));
  const visible = lines.map((line) => [line.name, at ? offset(line, at) : last(line)]);
  return html`<section class="card" ref=${place}><div class="titled"><h2>${name}</h2>
    <dl class="facts">${[["since", moment(frontier.since)], ["upper", moment(frontier.upper)], ["kept", frontier.since === null || frontier.upper === null ? "–" : span(frontier.upper - frontier.since)], ["lag", span(frontier.lag_ms)]].map(([what, value]) => html`<div><dt>${what}</dt><dd>${value}</dd></div>`)}</dl></div>
  <svg viewBox=${`0 0 ${W} ${tall}`} width=${W} height=${tall} class="remap" role="img" tabindex="0" onKeyDown=${step} onBlur=${() => point(null)} aria-label=${`${name}: ${lines.length} ${lines.length === 1 ? "partition" : "partitions"}; ${lines.map((line) => `${line.name} up to offset ${last(line)}`).join(", ")}; readable from ${moment(frontier.since)} to ${moment(frontier.upper)}; ${holds.length} ${holds.length === 1 ? "hold" : "holds"}`}
    onPointerMove=${pointed} onPointerDown=${pointed} onPointerLeave=${() => point(null)}>
    <defs><pattern id=${`${id}-hatch`} width="7" height="7" patternUnits="userSpaceOnUse" patternTransform="rotate(45)"><path d="M0 0V7" class="hatch" /></pattern>
      <clipPath id=${`${id}-kept`}><rect x=${x(since)} y="0" width=${Math.max(0, x(end) - x(since) + 6)} height=${H} /></clipPath>
      <clipPath id=${`${id}-past`}><rect x="0" y="0" width=${x(since)} height=${H} /></clipPath>
      ${lines.map((_, n) => html`<linearGradient id=${`${id}-${n}`} x1="0" y1=${TOP} x2="0" y2=${base} gradientUnits="userSpaceOnUse"><stop offset="0" style=${{ stopColor: colour(n), stopOpacity: lines.length > 3 ? 0.14 : 0.34 }} /><stop offset="1" style=${{ stopColor: colour(n), stopOpacity: 0.02 }} /></linearGradient>`)}</defs>
    <rect class="window" x=${x(since)} y=${TOP} width=${Math.max(0, x(end) - x(since))} height=${base - TOP} />
    <rect x=${LEFT} y=${TOP} width=${Math.max(0, x(since) - LEFT)} height=${base - TOP} fill=${`url(#${id}-hatch)`} />
    <rect x=${x(end)} y=${TOP} width=${Math.max(0, x(high) - x(end))} height=${base - TOP} fill=${`url(#${id}-hatch)`} />
    ${x(since) - LEFT > 86 && html`<text class="tick aside" x=${(LEFT + x(since)) / 2} y=${TOP + 16} text-anchor="middle">forgotten</text>`}
    ${levels.map((o, n) => html`<line class="axis" x1=${LEFT} x2=${x(end)} y1=${y(o)} y2=${y(o)} /><text class="tick" x=${LEFT - 8} y=${y(o) + 4} text-anchor="end">${words[n]}</text>`)}
    ${ticks(low, high, Math.max(2, Math.floor(W / 120))).filter((t) => x(t) > LEFT + 22 && x(t) < W - RIGHT - 12).map((t) => html`<line class="axis" x1=${x(t)} x2=${x(t)} y1=${TOP} y2=${base} /><text class="tick" x=${x(t)} y=${base + 20} text-anchor="middle">${shownTime(t)}</text>`)}
    <path class="rug" d=${m.times.slice(-600).map((t) => `M${x(t).toFixed(1)},${base + 1}v5`).join("")} />
    ${lines.map((line, n) => { const d = stairs(line.steps), begin = d.slice(1).split(/[,HV]/)[0];
      return d && html`<path d=${`${d}V${base}H${begin}Z`} fill=${`url(#${id}-${n})`} clip-path=${`url(#${id}-kept)`} />
        <path class="line past" d=${d} style=${{ stroke: colour(n) }} clip-path=${`url(#${id}-past)`} />
        <g clip-path=${`url(#${id}-kept)`}><path class="line glow" d=${d} style=${{ stroke: colour(n) }} /><path class="line" d=${d} style=${{ stroke: colour(n) }} /></g>`; })}
    <line class="bound since" x1=${x(since)} x2=${x(since)} y1=${TOP - 8} y2=${base} /><text class="bound since" x=${x(since) + (x(since) > W * 0.75 ? -6 : 6)} text-anchor=${x(since) > W * 0.75 ? "end" : "start"} y=${TOP - 9}>since</text>
    <line class="bound upper" x1=${x(end)} x2=${x(end)} y1=${TOP - 8} y2=${base} /><text class="bound upper" x=${x(end) + 6} text-anchor=${W - x(end) > 44 ? "start" : "end"} dx=${W - x(end) > 44 ? 0 : -12} y=${TOP - 9}>upper</text>
    ${lines.map((line, n) => html`<g style=${{ color: colour(n) }}><circle class="pulse" cx=${x(end)} cy=${y(last(line))} r="4.5" /><circle class="dot" cx=${x(end)} cy=${y(last(line))} r="4.5" /></g>`)}
    ${labelled && apart(ends, 14, base).map(({ n, y: to, text }) => html`<text class="at" x=${x(end) + 10} y=${to + 4} style=${{ fill: colour(n) }}>${text}</text>`)}
    ${marks.map(([time, who], n) => { const u = x(Math.max(low, time)), lane = H + n * LANE + 2, left = u - LEFT > W * 0.3, names = [...new Set(who)].join(", "), most = Math.floor((left ? u - LEFT : W - u - 14) / LETTER);
      return html`<line class="held" x1=${u} x2=${u} y1=${TOP} y2=${lane} /><rect class="holding" x=${u} y=${lane - 2} width=${Math.max(0, x(end) - u)} height="4" rx="2" /><path class="holder" d=${`M${u},${lane - 5.5} l5.5,5.5 l-5.5,5.5 l-5.5,-5.5z`} /><text class="tick" x=${u + (left ? -11 : 11)} y=${lane + (left ? 4 : -5)} text-anchor=${left ? "end" : "start"}>${cut(names, most)}</text>`; })}
    ${at && html`<${Told} x=${x(at)} W=${W} time=${at} lines=${lines.map((line, n) => { const o = offset(line, at); return { name: part(line.name), o: o === undefined ? "–" : shown(o), y: o === undefined ? null : y(o), colour: colour(n) }; })} base=${base} />`}
  </svg>
  <p class="small keys" aria-live=${at ? "polite" : "off"}>${visible.map(([of, o], n) => html`<span class="key"><i style=${{ background: colour(n) }}></i>${part(of)}: <b>${o === undefined ? "nothing" : shown(o)}</b></span>`)}<span class="soft">${at ? `visible at ${moment(at)}` : "visible now; point at a time, or use the arrow keys"}</span></p></section>`;
}

// What was visible at the time that one points at.
function Told({ x, W, time, lines, base }) {
  const rows = lines.slice(0, 12), more = lines.length - rows.length, head = moment(time);
  const width = 34 + LETTER * 1.06 * Math.max(head.length - 3, ...rows.map((r) => r.name.length + 2 + r.o.length)), height = 27 + 16 * (rows.length + (more > 0 ? 1 : 0));
  const left = x + 14 + width > W ? x - 14 - width : x + 14, over = TOP + 4;
  return html`<g class="told"><line x1=${x} x2=${x} y1=${TOP - 4} y2=${base} />
    ${lines.map((r) => r.y !== null && html`<circle cx=${x} cy=${r.y} r="4.5" style=${{ fill: r.colour }} />`)}
    <rect x=${left} y=${over} width=${width} height=${height} rx="9" /><text class="at" x=${left + 12} y=${over + 18}>${head}</text>
    ${rows.map((r, n) => html`<rect class="swatch" x=${left + 12} y=${over + 27 + 16 * n} width="9" height="9" rx="2.5" style=${{ fill: r.colour }} /><text x=${left + 27} y=${over + 35.5 + 16 * n}>${r.name}</text><text x=${left + width - 12} y=${over + 35.5 + 16 * n} text-anchor="end" class="at">${r.o}</text>`)}
    ${more > 0 && html`<text x=${left + 12} y=${over + 35.5 + 16 * rows.length}>and ${more} more</text>`}</g>`;
}

const ROW = 28;
export function Ranges({ frontiers, holds }) {
  const [place, W] = useWidth();
  const found = frontiers.filter((f) => f.since !== null && f.upper !== null && f.lag_ms !== null);
  if (!found.length) return html`<p class="empty" ref=${place}>Nothing yet.</p>`;
  const end = Math.max(...found.map((f) => f.upper)), low = Math.min(...found.map((f) => f.since)), width = Math.max(1, end - low);
  const side = Math.min(220, Math.round(W * 0.34), 14 + Math.round(7.4 * Math.max(...found.map((f) => f.object.length)))), tall = found.length * ROW + 8;
  const x = (t) => side + (Math.max(0, t - low) / width) * (W - side - 12);
  return html`<div ref=${place}><svg viewBox=${`0 0 ${W} ${tall + 20}`} width=${W} height=${tall + 20} role="img" aria-label=${found.map((f) => `${f.object}: ${span(f.upper - f.since)}`).join(", ")}>
    ${ticks(low, end, Math.max(2, Math.floor((W - side) / 130))).map((t) => html`<line class="axis" x1=${x(t)} x2=${x(t)} y1="0" y2=${tall} />${x(t) > side + 18 && x(t) < W - 40 ? html`<text class="tick" x=${x(t)} y=${tall + 16} text-anchor="middle">${shownTime(t)}</text>` : ""}`)}
    ${found.map((f, n) => { const y = n * ROW + 6, mine = holds.filter((h) => h.object === f.object && h.since !== null);
      return html`<text x=${side - 10} y=${y + 13} text-anchor="end">${fitted(f.object, side - 12, "12px Inter, system-ui, sans-serif")}<title>${f.object}</title></text><rect class="range" x=${x(f.since)} y=${y} width=${Math.max(4, x(f.upper) - x(f.since))} height="16" rx="5" style=${{ fill: `var(${STRIPES[f.kind] ?? "--c0"})` }}><title>${f.object}: ${span(f.upper - f.since)}, from ${moment(f.since)} to ${moment(f.upper)}</title></rect>
        ${mine.map((h) => html`<path class="holder" d=${`M${x(Math.min(end, h.since))},${y + 2} l6,6 l-6,6 l-6,-6z`}><title>${h.holder} holds from ${moment(h.since)}</title></path>`)}`; })}</svg></div>
    <p class="small soft keys">A bar is what can be read, from since to upper. ${[...new Set(found.map((f) => f.kind))].map((kind) => html`<span class="key"><i style=${{ background: `var(${STRIPES[kind] ?? "--c0"})` }}></i>${kind}</span>`)}<span class="key"><i class="diamond"></i>held from there on</span></p>
    ${holds.length > 0 && html`<div class="scroll" tabindex="0" role="region" aria-label="Holds"><table aria-label="Holds" class="stack"><thead><tr><th scope="col">object</th><th scope="col">holder</th><th scope="col" class="n">held from</th></tr></thead><tbody>${holds.map((h) => html`<tr><td data-title="object">${h.object}</td><td data-title="holder">${h.holder}</td><td class="n" data-title="held from">${moment(h.since)}</td></tr>`)}</tbody></table></div>`}`;
}
