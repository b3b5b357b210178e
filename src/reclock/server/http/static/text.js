// What a text of SQL consists of: words, quoted names, strings, comments. Enough to tell which objects
// it names, and whether it may be remembered; what it means is for the server to say.
const SPACE = /\s+/y, WORD = /[\p{L}_][\p{L}\p{N}_$]*/uy, DOLLAR = /\$(?:[\p{L}_][\p{L}\p{N}_]*)?\$/uy, NUMBER = /\$?[0-9][0-9a-z_.]*/iy;

// The pieces of a text, without spaces: { kind, text, value }. What is begun and not ended is not `whole`.
export function pieces(text) {
  const found = [];
  let at = 0;
  const taken = (rule) => { rule.lastIndex = at; return rule.exec(text)?.[0]; };
  const put = (kind, end, value, whole = true) => { found.push({ kind, text: text.slice(at, end), value, whole, end }); at = end; };
  const quoted = (mark, from, escapes) => { // to the mark that is not doubled
    let value = "";
    for (let to = from; to < text.length; to += 1) {
      if (escapes && text[to] === "\\") { value += text[to + 1] ?? ""; to += 1; }
      else if (text[to] !== mark) value += text[to];
      else if (text[to + 1] === mark) { value += mark; to += 1; }
      else return [to + 1, value, true];
    }
    return [text.length, value, false];
  };
  while (at < text.length) {
    const space = taken(SPACE), word = taken(WORD), dollar = taken(DOLLAR), next = text.slice(at, at + 2);
    if (space) at += space.length;
    else if (next === "--") { const end = text.indexOf("\n", at); put("comment", end < 0 ? text.length : end, text.slice(at, end < 0 ? undefined : end)); }
    else if (next === "/*") {
      let depth = 1, to = at + 2;
      for (; to < text.length && depth; to += 1) {
        const two = text.slice(to, to + 2);
        if (two === "/*" || two === "*/") { depth += two === "/*" ? 1 : -1; to += 1; }
      }
      put("comment", to, text.slice(at, to), !depth);
    } else if (next[0] === "'") {
      const before = found.at(-1), escapes = before?.kind === "word" && before.end === at && before.value === "e"; // E'…'
      const [end, value, whole] = quoted("'", at + 1, escapes);
      put("string", end, value, whole);
    } else if (next[0] === '"') { const [end, value, whole] = quoted('"', at + 1, false); put("name", end, value, whole); }
    else if (dollar) { const end = text.indexOf(dollar, at + dollar.length); put("string", end < 0 ? text.length : end + dollar.length, text.slice(at + dollar.length, end < 0 ? undefined : end), end >= 0); }
    else if (word) put("word", at + word.length, word.toLowerCase());
    else { const number = taken(NUMBER); put(number ? "number" : "other", at + (number ? number.length : [...text.slice(at, at + 2)][0].length), number ?? next[0]); }
  }
  return found;
}

// The statements of a text, without comments; empty ones are none.
export function statements(text) {
  const found = [[]];
  for (const piece of pieces(text)) if (piece.text === ";") found.push([]); else if (piece.kind !== "comment") found.at(-1).push(piece);
  return found.filter((one) => one.length);
}

// The first word of a statement: of a query in parentheses, the query's.
const first = (statement) => statement.find((piece) => piece.text !== "(")?.value;
export const isSubscribe = (text) => { const found = statements(text); return found.length === 1 && first(found[0]) === "subscribe"; };

// Those of the objects that a text reads; theirs are the names that people see, without the schema public.
// A relation is named after FROM, JOIN, TABLE or SUBSCRIBE, or after a comma between FROM and what ends it.
const BEFORE = new Set(["from", "join", "table", "subscribe", "to", "only", "lateral"]);
const AFTER = new Set(["where", "group", "having", "order", "limit", "offset", "fetch", "window", "union", "except", "intersect", "select", "as", "returning"]);
const isNamed = (piece) => piece?.kind === "name" || (piece?.kind === "word" && !BEFORE.has(piece.value));
export function named(text, objects) {
  const chains = new Set();
  for (const statement of statements(text)) {
    const levels = [{ listed: false, opened: false }]; // of parentheses: whether a comma is between relations, and whether one begins
    statement.forEach((piece, at) => {
      const before = statement[at - 1], level = levels.at(-1), word = piece.kind === "word" ? piece.value : null;
      const here = before?.kind === "word" ? BEFORE.has(before.value) && statement[at - 2]?.value !== "distinct" : before?.text === "," ? level.listed : before?.text === "(" && level.opened;
      if (piece.text === "(") levels.push({ listed: here, opened: here });
      else if (piece.text === ")") { if (levels.length > 1) levels.pop(); }
      else if (word === "from") level.listed ||= before?.value !== "distinct";
      else if (AFTER.has(word) && !(word === "as" && level.listed && statement[at + 1]?.value !== "of")) level.listed = false;
      else if (here && isNamed(piece)) {
        const chain = [piece.value];
        for (let next = at + 1; statement[next]?.text === "." && ["word", "name"].includes(statement[next + 1]?.kind); next += 2) chain.push(statement[next + 1].value);
        chains.add(chain.slice(chain.length > 1 && chain[0] === "public" ? 1 : 0).join("."));
      }
    });
  }
  return objects.filter((name) => chains.has(name));
}

// Only what cannot have a secret is remembered: a text that only reads, or has no string at all; without a
// word that secrets go by, an address with a user, or what looks like a key, be it in a comment.
const READS = new Set(["select", "with", "values", "table", "subscribe", "explain", "show", "fetch"]);
const CHANGES = /^(create|alter|insert|update|delete|merge|copy|set|apply|prepare|execute|do|call)$/;
const SUSPECT = /pass(?:wor[dt]|wd|phrase|code)|passwd|pwd|secret|token|credential|api[ _.-]?key|(?:access|private|account|shared|signing|encryption|master|auth|ssl)[ _.-]?key|bearer|sasl|oauth|signature|:\/\/\S*@/i;
const RUN = /[A-Za-z0-9+/=_.-]{20,}/g, KEY = /-----BEGIN/;
const isKeyLike = (value) => KEY.test(value) || (value.match(RUN) ?? []).some((run) => /[0-9]/.test(run) || (/[A-Z]/.test(run) && /[a-z]/.test(run)));
export function mayRemember(text) {
  const all = pieces(text);
  if (SUSPECT.test(text) || all.some((p) => !p.whole)) return false;
  if (all.some((p) => SUSPECT.test(p.value) || (["string", "comment"].includes(p.kind) && isKeyLike(p.value)))) return false;
  return statements(text).every((one) => !one.some((p) => p.kind === "string")
    || (READS.has(first(one)) && !one.some((p) => p.kind === "word" && CHANGES.test(p.value))));
}
