// Small parts that pages share.
import { h, htm, uPlot, useCallback, useEffect, useRef, useState } from "./vendor/core.js";

export const html = htm.bind(h);
const whole = new Intl.NumberFormat("en");
const short = new Intl.NumberFormat("en", { notation: "compact", maximumFractionDigits: 1 });

export const number = (n) => (n === null || n === undefined ? "–" : Math.abs(n) < 100000 ? whole.format(n) : short.format(n));
export const exact = (n) => (n === null || n === undefined ? "–" : n.toLocaleString("en"));
// A place in the log of a PostgreSQL server, as it writes it.
export const lsn = (n) => (n === null || n === undefined ? "–" : `${Math.floor(n / 2 ** 32).toString(16)}/${(n % 2 ** 32).toString(16)}`.toUpperCase());
export const rate = (n) => (n === null || n === undefined || !isFinite(n) ? "–" : `${n >= 100 ? number(Math.round(n)) : n.toFixed(n >= 10 || n === 0 ? 0 : 1)}/s`);
export function bytes(n) {
  if (n === null || n === undefined) return "–";
  const units = ["B", "KB", "MB", "GB", "TB"];
  let at = 0;
  while (n >= 1000 && at < 4) { n /= 1000; at += 1; }
  return `${n >= 100 || at === 0 ? Math.round(n) : n.toFixed(1)} ${units[at]}`;
}
export function span(ms) {
  if (ms === null || ms === undefined) return "–";
  if (ms < 1000) return `${Math.round(ms)} ms`;
  if (ms < 60000) return `${(ms / 1000).toFixed(ms < 10000 ? 1 : 0)} s`;
  if (ms < 3600000) return `${Math.floor(ms / 60000)} min`;
  return ms < 86400000 * 2 ? `${(ms / 3600000).toFixed(1)} h` : `${Math.floor(ms / 86400000)} d`;
}
// A text that is cut where it would be wider than there is room for.
const ruler = document.createElement("canvas").getContext("2d");
export function fitted(text, most, font) {
  ruler.font = font;
  if (ruler.measureText(text).width <= most) return text;
  const letters = [...text].slice(0, Math.ceil(most / 3));
  while (letters.length > 1 && ruler.measureText(`${letters.join("")}…`).width > most) letters.pop();
  return `${letters.join("")}…`;
}
export const clock = (ms) => new Date(ms).toLocaleTimeString([], { hour12: false });
export const isTime = (ms) => ms > 1e11 && ms < 1e14;
export const moment = (ms) => (ms === null || ms === undefined ? "–" : isTime(ms) ? `${clock(ms)}.${String(ms % 1000).padStart(3, "0")}` : number(ms));

// The colour of each kind of object.
export const STRIPES = { source: "--c1", table: "--c7", "materialized view": "--c0", view: "--c5", index: "--c6", sink: "--c2" };
const TONES = { running: "ok", complete: "ok", waiting: "ok", loading: "warn", starting: "warn", recovering: "warn", stalled: "bad", failed: "bad", failing: "bad", late: "bad" };
export const Pill = ({ state }) => html`<span class=${`pill ${TONES[state] ?? ""}`}>${state}</span>`;

export function Problem({ error }) {
  if (!error) return null;
  return html`<div class="error" role="alert"><strong>${error.message}</strong>${error.code && html` <code>${error.code}</code>`}
    ${error.detail && html`<p>${error.detail}</p>`}${error.hint && html`<p class="hint">Hint: ${error.hint}</p>`}</div>`;
}

export function Table({ caption, columns, rows, empty = "Nothing yet." }) {
  if (!rows.length) return html`<p class="empty">${empty}</p>`;
  const stack = columns.some((c) => c.wide) || columns.length > 5; // on a phone a row is a list then
  return html`<div class="scroll" tabindex="0" role="region" aria-label=${caption}><table aria-label=${caption} class=${stack ? "stack" : ""}>
    <thead><tr>${columns.map((c) => html`<th scope="col" class=${c.right ? "n" : ""}>${c.title}</th>`)}</tr></thead>
    <tbody>${rows.map((row) => html`<tr key=${row.key ?? row.name}>${columns.map((c) => html`<td class=${c.right ? "n" : c.wide ? "wide" : ""} data-title=${stack ? c.title : null}>${c.of(row)}</td>`)}</tr>`)}</tbody>
  </table></div>`;
}

// Looks again and again while the page is seen; what was found before stays if a look fails.
export function usePoll(look, every, deps = []) {
  const [found, set] = useState({ data: null, error: null });
  useEffect(() => {
    let live = true, timer;
    const go = async () => {
      if (!document.hidden) {
        try { const data = await look(); if (live) set({ data, error: null }); }
        catch (error) { if (live) set((f) => ({ ...f, error })); }
      }
      if (live) timer = setTimeout(go, every);
    };
    go();
    return () => { live = false; clearTimeout(timer); };
  }, deps);
  return found;
}

export const colour = (at) => getComputedStyle(document.documentElement).getPropertyValue(`--c${at % 8}`).trim();
// How wide an element is, in pixels, now and whenever that changes.
export function useWidth(least = 300) {
  const watch = useRef(null), [width, set] = useState(0);
  const place = useCallback((node) => {
    watch.current?.disconnect();
    watch.current = node && new ResizeObserver(([seen]) => set(Math.round(seen.contentRect.width)));
    if (node) watch.current.observe(node);
  }, []);
  return [place, Math.max(least, width)];
}

// Round numbers between two, about so many: for axes.
export function round(low, high, count) {
  const raw = Math.max(1e-9, (high - low) / count), power = 10 ** Math.floor(Math.log10(raw));
  const step = Math.max(1, [1, 2, 5, 10].find((n) => n * power >= raw) * power);
  const found = [];
  for (let at = Math.ceil(low / step) * step; at <= high; at += step) found.push(at);
  return found;
}

const variable = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

function faded(u, hue) {
  if (!Number.isFinite(u.bbox.top + u.bbox.height)) return null; // not laid out yet
  const made = u.ctx.createLinearGradient(0, u.bbox.top, 0, u.bbox.top + u.bbox.height);
  made.addColorStop(0, `${hue}55`); made.addColorStop(1, `${hue}06`);
  return made;
}

export function Chart({ title, times, series, format, theme }) {
  const place = useRef(null), plot = useRef(null);
  const names = series.map((s) => s.name).join("\n");
  useEffect(() => {
    const box = place.current;
    const width = () => box.clientWidth || 300;
    const axis = { stroke: variable("--soft"), grid: { stroke: variable("--line"), width: 1 }, ticks: { show: false }, font: "11px Inter, system-ui, sans-serif", size: 44 };
    plot.current = new uPlot({
      width: width(), height: 190, legend: { show: series.length <= 8 }, cursor: { points: { size: 7 } },
      scales: { y: { range: (u, low, high) => [0, high > 0 ? high * 1.15 : 1] } },
      axes: [{ ...axis, size: 26, space: 76, values: (u, ticks) => ticks.map((t) => (u.scales.x.max - u.scales.x.min < 900 ? clock(t * 1000) : clock(t * 1000).slice(0, 5))) }, { ...axis, size: 58, values: (u, ticks) => ticks.map((t, at) => (at && format(t) === format(ticks[at - 1]) ? "" : format(t))) }],
      series: [{ label: "", value: () => "" }, ...series.map((s, at) => ({ label: s.name, stroke: colour(at), width: 2, fill: series.length === 1 ? (u) => faded(u, colour(at)) : undefined, points: { show: false }, value: (u, v) => (v === null || v === undefined ? "–" : format(v)) }))],
    }, [times, ...series.map((s) => s.values)], box);
    const watch = new ResizeObserver(() => plot.current?.setSize({ width: width(), height: 190 }));
    watch.observe(box);
    return () => { watch.disconnect(); plot.current?.destroy(); plot.current = null; };
  }, [names, theme]);
  useEffect(() => {
    const drawn = plot.current;
    if (!drawn) return;
    drawn.setData([times, ...series.map((s) => s.values)]);
    if (!(drawn.cursor.left >= 0) && times.length) drawn.setLegend({ idx: times.length - 1 }); // what is now, unless one points at a time
  });
  const last = series.map((s) => `${s.name} ${format(s.values.at(-1) ?? 0)}`).join(", ");
  return html`<section class="card"><h2>${title}</h2>${times.length < 3 && html`<p class="soft small">A sample comes every five seconds.</p>`}<div class="chart" ref=${place} role="img" aria-label=${`${title}, now: ${last || "nothing"}`}></div></section>`;
}

// The changes of counters a second, from samples of them.
export function rates(samples, of) {
  return samples.map((s, at) => {
    if (!at) return null;
    const before = samples[at - 1], seconds = (s.t - before.t) / 1000, a = of(before), b = of(s);
    return a === undefined || b === undefined || b < a || seconds <= 0 ? null : (b - a) / seconds;
  });
}
