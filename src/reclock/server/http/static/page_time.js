// The remap as a picture: which offsets of each partition became visible when, what is kept, what is
// complete, and who holds what. Bindings that the database has folded since are remembered, paler.
import { useRef } from "./vendor/core.js";
import { get } from "./api.js";
import { html, Problem, usePoll } from "./parts.js";
import { Ranges, Remap } from "./remap.js";

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
    ${sources.map(({ name, parts }) => html`<${Remap} key=${name} name=${name} log=${now.sources.find((s) => s.name === name)?.log} partitions=${parts} frontier=${frontiers.find((f) => f.object === name)} holds=${data.holds.filter((x) => x.object === name)} />`)}
    <section class="card"><h2>What is kept of every object</h2><${Ranges} frontiers=${frontiers} holds=${data.holds} /></section>`;
}
