// Settings and roles: what is in force, and who there is.
import { useState } from "./vendor/core.js";
import { rows } from "./api.js";
import { html, Problem, Table, usePoll } from "./parts.js";

export function Settings() {
  const [found, search] = useState("");
  const settings = usePoll(() => rows("SELECT name, value, description FROM reclock.settings ORDER BY name"), 10000);
  const roles = usePoll(() => rows("SELECT rolname, rolcanlogin, rolsuper FROM pg_roles ORDER BY rolname"), 10000);
  const granted = usePoll(() => rows("SELECT grantee, table_schema, table_name, privilege_type FROM information_schema.table_privileges ORDER BY 1, 4, 2, 3"), 10000);
  const may = (role) => {
    const found = new Map();
    for (const g of granted.data ?? []) if (g.grantee === role) { const name = g.table_schema === "public" ? g.table_name : `${g.table_schema}.${g.table_name}`; found.set(g.privilege_type, [...(found.get(g.privilege_type) ?? []), name]); }
    return [...found].map(([what, names]) => `${what} on ${names.slice(0, 8).join(", ")}${names.length > 8 ? ` and ${names.length - 8} more` : ""}`).join("; ");
  };
  const shown = (settings.data ?? []).filter((s) => `${s.name} ${s.description}`.toLowerCase().includes(found.toLowerCase()));
  return html`<div class="head"><div><h1>Settings and roles</h1><p>ALTER SYSTEM SET, CREATE USER and GRANT change them, on the SQL page.</p></div>
    <label class="row small">Find <input type="search" value=${found} onInput=${(e) => search(e.target.value)} /></label></div>
  <${Problem} error=${settings.error} /><${Table} caption="Settings" rows=${shown} empty=${settings.data ? "No setting is like that." : "…"} columns=${[
    { title: "setting", of: (s) => html`<code>${s.name}</code>` }, { title: "value", of: (s) => html`<code>${s.value}</code>` }, { title: "what it is", wide: true, of: (s) => s.description }]} />
  <h2 class="sub">Roles</h2><${Problem} error=${roles.error} /><${Table} caption="Roles" empty="There are no roles yet: CREATE USER makes one." rows=${(roles.data ?? []).map((r) => ({ ...r, name: r.rolname }))} columns=${[
    { title: "role", of: (r) => r.rolname }, { title: "may log in", of: (r) => (r.rolcanlogin ? "yes" : "no") }, { title: "superuser", of: (r) => (r.rolsuper ? "yes" : "no") },
    { title: "privileges", wide: true, of: (r) => (r.rolsuper ? "everything" : may(r.rolname) || "–") }]} />`;
}
