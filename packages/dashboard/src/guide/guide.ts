import MiniSearch, { type SearchResult } from "minisearch";
import { wearKept } from "../parts/frame/kept-theme.js";
import { searchOptions } from "./search-options.js";

const resultsMax = 8;

wearKept();
addCopyButtons();
openContentsOnWideScreens();
addSearch();

/** Every block of code gets a button that copies it. */
function addCopyButtons(): void {
  for (const block of document.querySelectorAll(".block")) {
    const code = block.querySelector("code");
    if (!code || !navigator.clipboard) continue;
    const button = document.createElement("button");
    button.type = "button";
    button.className = "copy";
    button.textContent = "Copy";
    button.addEventListener("click", async () => {
      await navigator.clipboard.writeText(code.textContent ?? "");
      button.textContent = "Copied";
      setTimeout(() => (button.textContent = "Copy"), 1_500);
    });
    block.append(button);
  }
}

/** On narrow screens the contents are folded away. */
function openContentsOnWideScreens(): void {
  const contents = document.querySelector<HTMLDetailsElement>(".contents");
  const wide = matchMedia("(min-width: 800px)");
  const fit = () => contents && (contents.open = wide.matches);
  wide.addEventListener("change", fit);
  fit();
  contents?.querySelector("[aria-current]")?.scrollIntoView({ block: "nearest" });
}

/** The search field: finds while you type, goes with the arrow keys and Enter, and opens with `/`. */
function addSearch(): void {
  const field = document.querySelector<HTMLInputElement>("#search");
  const list = document.querySelector<HTMLElement>("#found");
  if (!field || !list) return;
  let index: Promise<MiniSearch> | undefined;
  let chosen = 0;
  const ready = () => {
    index ??= loadIndex().catch((error: unknown) => {
      index = undefined; // the next key tries again
      throw error;
    });
    return index;
  };
  const options = () => [...list.querySelectorAll<HTMLAnchorElement>("a")];
  function choose(at: number): void {
    const all = options();
    chosen = (at + all.length) % Math.max(1, all.length);
    for (const [each, option] of all.entries()) option.setAttribute("aria-selected", String(each === chosen));
    if (all[chosen]) field?.setAttribute("aria-activedescendant", `found-${chosen}`);
    else field?.removeAttribute("aria-activedescendant");
    all[chosen]?.scrollIntoView({ block: "nearest" });
  }
  function show(children: HTMLElement[], isOpen: boolean): void {
    list?.replaceChildren(...children);
    if (list) list.hidden = !isOpen;
    field?.setAttribute("aria-expanded", String(isOpen));
    choose(0);
  }
  async function find(): Promise<void> {
    const query = field?.value.trim() ?? "";
    if (query === "") return show([], false);
    try {
      const found = (await ready()).search(query).slice(0, resultsMax);
      if (field?.value.trim() !== query) return; // typed on meanwhile
      show(found.length > 0 ? found.map(result) : [note("Nothing on these pages matches.")], true);
    } catch {
      show([note("The search index did not load. Type on to try again.")], true);
    }
  }
  field.addEventListener("input", () => void find());
  field.addEventListener("focus", () => void ready().catch(() => undefined));
  field.addEventListener("keydown", (event) => {
    if (event.key === "ArrowDown") choose(chosen + 1);
    else if (event.key === "ArrowUp") choose(chosen - 1);
    else if (event.key === "Escape") show([], false);
    else return;
    event.preventDefault();
  });
  field.form?.addEventListener("submit", (event) => {
    event.preventDefault();
    options()[chosen]?.click();
  });
  field.form?.addEventListener("focusout", ({ relatedTarget }) => {
    if (!field.form?.contains(relatedTarget as Node | null)) show([], false);
  });
  list.addEventListener("click", () => show([], false));
  document.addEventListener("keydown", (event) => {
    if (event.key !== "/" || event.ctrlKey || event.metaKey || event.target instanceof HTMLInputElement) return;
    event.preventDefault();
    field.focus();
  });
}

async function loadIndex(): Promise<MiniSearch> {
  const reply = await fetch("/docs/guide/search.json");
  if (!reply.ok) throw new Error(`search.json: ${reply.status}`);
  return MiniSearch.loadJSON(await reply.text(), searchOptions);
}

function result({ title, page, address }: SearchResult, at: number): HTMLElement {
  const link = document.createElement("a");
  link.id = `found-${at}`;
  link.setAttribute("role", "option");
  link.href = address as string;
  link.tabIndex = -1; // the arrow keys go through the results
  const where = document.createElement("span");
  where.textContent = page === title ? "" : (page as string);
  link.append(title as string, where);
  return link;
}

function note(text: string): HTMLElement {
  const line = document.createElement("p");
  line.className = "note";
  line.textContent = text;
  return line;
}
