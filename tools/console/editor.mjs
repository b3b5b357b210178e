// The editor of the SQL page, and what colours SQL elsewhere.
export { EditorState, Compartment } from "@codemirror/state";
export { EditorView, keymap, lineNumbers, drawSelection, placeholder } from "@codemirror/view";
export { defaultKeymap, history, historyKeymap } from "@codemirror/commands";
export { sql, PostgreSQL, SQLDialect } from "@codemirror/lang-sql";
export { autocompletion, completionKeymap, closeBrackets } from "@codemirror/autocomplete";
export { syntaxHighlighting, HighlightStyle, bracketMatching } from "@codemirror/language";
export { highlightCode, tagHighlighter, tags } from "@lezer/highlight";
