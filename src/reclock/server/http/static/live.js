// Rows as a SUBSCRIBE changes them: each stays where it is, and what changed of it lights up.
import { clock, html, number } from "./parts.js";

const LIGHT = 2200, KEPT = 10000;
const cell = (value) => (value === null ? "NULL" : typeof value === "object" ? JSON.stringify(value) : String(value));
const RIGHT = /^(smallint|integer|bigint|numeric|real|double)/;
export const head = (columns) => html`<thead><tr>${columns.map((c) => html`<th scope="col" class=${RIGHT.test(c.type) ? "n" : ""} title=${c.type}>${c.name}</th>`)}</tr></thead>`;
const look = (value, column) => `${value === null ? "null " : ""}${RIGHT.test(column?.type) ? "n" : ""}`;
export const line = (row, columns) => row.map((v, at) => html`<td class=${look(v, columns[at])}>${cell(v)}</td>`);

export const begun = () => ({ columns: [], rows: new Map(), partial: [], made: 0, time: null, log: false, mode: "live", problem: null });

// The state after an event. Changes without a timestamp are part of a time that is not complete yet.
export function applied(state, name, data) {
  if (name === "columns") {
    const log = data.columns[1].name !== "mz_diff"; // ENVELOPE: what happened is shown, not what is there
    return { ...(data.again ? state : begun()), partial: [], log, columns: log ? data.columns : data.columns.slice(2), mode: "live" };
  }
  if (name === "cut") return { ...state, partial: [], mode: "cut off, and coming back" };
  if (name === "end" || name === "failure") return { ...state, mode: "ended" };
  const partial = state.partial.concat(data.changes ?? []);
  if (data.timestamp === null) return { ...state, partial };
  const next = { ...state, partial: [], time: Number(data.timestamp) };
  return state.log ? noted(next, partial) : changed(next, partial, state.time === null);
}

// The state once the light is out, and what went is gone.
export const settled = (state) => (state.log ? state : changed(state, [], false));
export const SETTLES = LIGHT + 200;

function noted(state, changes) {
  for (const row of changes) state.rows.set(++state.made, entry(state, row, 1, "lit"));
  for (const key of [...state.rows.keys()].slice(0, -500)) state.rows.delete(key);
  return state;
}

const entry = (state, row, count, mark) => ({ id: ++state.made, row, count, mark, cells: new Set(), when: Date.now() });

function changed(state, changes, first) {
  const now = Date.now(), net = new Map(), gone = [], come = [];
  for (const [key, e] of state.rows) {
    if (now - e.when > LIGHT) { e.mark = ""; e.cells = new Set(); if (e.count <= 0) state.rows.delete(key); }
  }
  for (const [, diff, ...row] of changes) {
    const key = JSON.stringify(row), known = net.get(key);
    net.set(key, { row, diff: (known?.diff ?? 0) + Number(diff) });
  }
  for (const [key, { row, diff }] of net) {
    const e = state.rows.get(key);
    if (!diff) continue;
    if (e && e.count > 0) {
      e.count += diff;
      if (e.count <= 0) gone.push([key, e]); else Object.assign(e, { mark: "lit", when: now, stamp: ++state.made });
    } else come.push([key, row, diff, e]);
  }
  // A row that went and one that came, of which some columns are the same, are a row that changed.
  const pairs = gone.length * come.length <= 250000 ? paired(gone, come) : new Map();
  const order = [...state.rows], renamed = new Map();
  for (const [key, row, diff, e] of come) {
    const before = pairs.get(key);
    if (before) {
      const was = before[1].row;
      renamed.set(before[0], [key, Object.assign(before[1], { row, count: diff, mark: "changed", when: now, stamp: ++state.made, cells: new Set(row.flatMap((v, at) => (cell(v) === cell(was[at]) ? [] : [at]))) })]);
    } else if (e) Object.assign(e, { count: diff, mark: "lit", when: now, stamp: ++state.made });
    else order.push([key, entry(state, row, diff, first ? "" : "lit")]);
  }
  for (const [key, e] of gone) if (!renamed.has(key)) Object.assign(e, { mark: "gone", when: now, stamp: ++state.made });
  const kept = new Set([...renamed.values()].map(([key]) => key));
  const rows = new Map(order.filter(([key, e]) => !(kept.has(key) && !renamed.has(key) && e.count <= 0)).map((each) => renamed.get(each[0]) ?? each));
  return rows.size > KEPT ? { ...state, rows: new Map([...rows].slice(0, KEPT)), problem: `more than ${number(KEPT)} rows: only the first are followed here; a WHERE or LIMIT makes them fewer` } : { ...state, rows };
}

function paired(gone, come) {
  const left = new Set(gone), found = new Map();
  for (const [key, row] of come) {
    let best = null, most = 0;
    for (const one of left) {
      const same = one[1].row.reduce((sum, v, at) => sum + (cell(v) === cell(row[at]) ? 1 + 1 / (at + 2) : 0), 0);
      if (same > most) { most = same; best = one; }
    }
    if (best) { left.delete(best); found.set(key, best); }
  }
  return found;
}

export function Live({ live, most }) {
  const all = [...live.rows.values()], there = all.filter((r) => r.count > 0).length;
  const found = live.log ? all.slice(-most).reverse() : all.slice(0, most);
  return html`<p class="soft small" role="status">${live.mode}: ${number(there)} ${live.log ? "changes" : "rows"}${there > most ? ` (${live.log ? "the last" : "the first"} ${number(most)})` : ""}${live.time && `, complete up to ${clock(live.time)}`}</p>
    ${live.problem && html`<p class="small"><strong>${live.problem}</strong></p>`}
    <div class="scroll" tabindex="0" role="region" aria-label="Rows as they change"><table>${head(live.columns)}<tbody>${found.map((r) => html`<tr key=${r.mark === "changed" ? r.id : `${r.id} ${r.stamp ?? ""}`} class=${r.mark}>
      ${r.row.map((v, at) => html`<td key=${r.cells.has(at) ? `${at} ${r.stamp}` : at} class=${`${look(v, live.columns[at])}${r.cells.has(at) ? " lit" : ""}`}>${cell(v)}${r.count > 1 && !live.log && at === r.row.length - 1 ? html` <small class="soft">× ${r.count}</small>` : ""}</td>`)}</tr>`)}</tbody></table></div>`;
}
