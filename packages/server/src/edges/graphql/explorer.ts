import { createHash } from "node:crypto";

const style = `
:root { color-scheme: light dark; font: 15px/1.5 system-ui, sans-serif; }
body { margin: 0 auto; max-width: 72rem; padding: 1.5rem; }
h1 { font-size: 1.2rem; }
form { display: grid; grid-template-columns: 1fr 1fr; gap: 1rem; }
label { display: block; font-weight: 600; }
textarea, input, pre { box-sizing: border-box; width: 100%; font: 13px/1.45 ui-monospace, monospace; padding: .6rem; border: 1px solid #8888; border-radius: 6px; }
#query { height: 20rem; } #variables { height: 6rem; }
pre { min-height: 27rem; overflow: auto; margin: 0; }
button { padding: .5rem 1.4rem; margin-top: .8rem; font: inherit; cursor: pointer; }
dt { font-family: ui-monospace, monospace; margin-top: .5rem; } dd { margin-left: 1.5rem; opacity: .8; }`;

const script = `
const by = (id) => document.getElementById(id);
const send = async (query, variables) => {
  const reply = await fetch(location.pathname, {
    method: "POST",
    headers: { "content-type": "application/json", authorization: "Bearer " + by("key").value },
    body: JSON.stringify({ query, variables }),
  });
  return reply.json();
};
const named = (type) => type.name ?? (type.kind === "NON_NULL" ? named(type.ofType) + "!" : "[" + named(type.ofType) + "]");
by("form").addEventListener("submit", async (event) => {
  event.preventDefault();
  by("result").textContent = "…";
  try {
    const variables = by("variables").value.trim() ? JSON.parse(by("variables").value) : {};
    by("result").textContent = JSON.stringify(await send(by("query").value, variables), null, 2);
  } catch (error) {
    by("result").textContent = String(error);
  }
});
by("show").addEventListener("click", async () => {
  const of = "kind name ofType { kind name ofType { kind name ofType { kind name } } }";
  const query = "{ __schema { types { name description fields { name description args { name type { " + of + " } } type { " + of + " } } inputFields { name description type { " + of + " } } } } }";
  const { data, error } = await send(query, {});
  by("types").replaceChildren();
  if (!data) return void (by("types").textContent = error);
  for (const type of data.__schema.types.filter((each) => !each.name.startsWith("__") && (each.fields || each.inputFields))) {
    const title = document.createElement("h2");
    title.textContent = type.name;
    const list = document.createElement("dl");
    for (const field of type.fields ?? type.inputFields) {
      const args = (field.args ?? []).map((arg) => arg.name + ": " + named(arg.type)).join(", ");
      const term = document.createElement("dt");
      term.textContent = field.name + (args ? "(" + args + ")" : "") + ": " + named(field.type);
      const text = document.createElement("dd");
      text.textContent = field.description ?? "";
      list.append(term, text);
    }
    by("types").append(title, list);
  }
});`;

const html = `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>Millrace GraphQL</title>
<meta name="viewport" content="width=device-width"><style>${style}</style></head>
<body><h1>Millrace GraphQL</h1>
<p><label for="key">API key</label><input id="key" type="password" autocomplete="off" placeholder="mr_…"></p>
<form id="form"><div>
<label for="query">Query</label><textarea id="query" spellcheck="false">{
  myself {
    id
    endpoints { id name workersMin workersMax pods { desiredStatus } }
  }
}</textarea>
<label for="variables">Variables (JSON)</label><textarea id="variables" spellcheck="false"></textarea>
<button>Run</button> <button type="button" id="show">Show the schema</button></div>
<div><label>Result</label><pre id="result"></pre></div></form>
<section id="types"></section><script>${script}</script></body></html>`;

const hashOf = (text: string) => `'sha256-${createHash("sha256").update(text).digest("base64")}'`;

/** The explorer: one page that loads nothing from elsewhere, and the policy that enforces this. */
export const explorerPage = () => ({
  html,
  policy: `default-src 'none'; connect-src 'self'; style-src ${hashOf(style)}; script-src ${hashOf(script)}; base-uri 'none'; form-action 'none'; frame-ancestors 'none'`,
});
