// SQL in colours, where it cannot be edited. Until the colours have come it is plain.
import { useEffect, useState } from "./vendor/core.js";
import { html } from "./parts.js";

let made = null;
const painter = () => (made ??= Promise.all([import("./vendor/editor.js"), import("./dialect.js")]).then(([{ highlightCode, tagHighlighter, tags }, { Reclock }]) => {
  const look = tagHighlighter([
    { tag: tags.keyword, class: "kw" }, { tag: [tags.string, tags.special(tags.string)], class: "st" }, { tag: tags.number, class: "nu" },
    { tag: tags.comment, class: "co" }, { tag: tags.typeName, class: "ty" },
  ]);
  return (text) => {
    const found = [];
    highlightCode(text, Reclock.language.parser.parse(text), look, (piece, classes) => found.push(classes ? html`<span class=${classes}>${piece}</span>` : piece), () => found.push("\n"));
    return found;
  };
}));

export function Code({ text }) {
  const [paint, set] = useState(null);
  useEffect(() => { painter().then((found) => set(() => found), () => {}); }, []);
  return html`<pre tabindex="0" class="code">${paint ? paint(text) : text}</pre>`;
}
