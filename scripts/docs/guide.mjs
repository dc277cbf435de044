// Builds the guide (docs/guide, and the reference pages it lists) into packages/dashboard/dist/guide, which the server
// serves at /docs/guide. The set-up runs it; so does `npm run docs`.
import { mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join, posix, relative } from "node:path";
import { brotliCompressSync, constants, gzipSync } from "node:zlib";

const root = join(import.meta.dirname, "../..");
const docs = join(root, "docs");
const sources = join(root, "packages/dashboard/src/guide");
const required = createRequire(join(root, "packages/dashboard/package.json"));

/** Where the guide is built to. */
const guideFolder = join(root, "packages/dashboard/dist/guide");
const base = "/docs/guide/";

/** The pages in their order, as paths from docs/ without `.md`. */
const contents = JSON.parse(readFileSync(join(docs, "guide/contents.json"), "utf8")).map(({ section, pages }) => ({
  section,
  pages: pages.map((page) => posix.join("guide", page)),
}));
const listed = contents.flatMap(({ pages }) => pages);

/** Builds everything anew, then takes the old guide's place. */
export async function buildGuide() {
  const unfinished = `${guideFolder}.new`;
  rmSync(unfinished, { recursive: true, force: true });
  mkdirSync(unfinished, { recursive: true });
  const assets = await buildAssets(unfinished);
  const headings = [];
  await writePages(unfinished, assets, headings);
  writeFileSync(join(unfinished, "search.json"), JSON.stringify(await searchIndex(headings)));
  compress(unfinished, [...listed.map((page) => join(addressOf(page), "index.html")), ...assets.files, "search.json"]);
  rmSync(guideFolder, { recursive: true, force: true });
  renameSync(unfinished, guideFolder);
}

/** The folder of a page below the guide's address: `jobs/`, `reference/errors/`, or "" for the first page. */
function addressOf(page) {
  const name = page.replace(/^guide\//, "");
  return name === "index" ? "" : `${name}/`;
}

const titleOf = (page) => /^# (.+)$/m.exec(readFileSync(join(docs, `${page}.md`), "utf8"))[1];

/** The style sheet and the script, named by their content, so that browsers may keep them for ever. */
async function buildAssets(folder) {
  const { build } = createRequire(join(root, "packages/worker/package.json"))("esbuild");
  const { outputFiles } = await build({
    entryPoints: { guide: join(sources, "guide.ts"), style: join(sources, "guide.css") },
    outdir: folder,
    entryNames: "assets/[name]-[hash]",
    bundle: true,
    minify: true,
    write: false,
    format: "esm",
    target: "es2023",
    logLevel: "error",
  });
  mkdirSync(join(folder, "assets"));
  for (const { path, contents: bytes } of outputFiles) writeFileSync(path, bytes);
  const files = outputFiles.map(({ path }) => relative(folder, path));
  const named = (ending) => base + files.find((file) => file.endsWith(ending));
  return { files, script: named(".js"), style: named(".css") };
}

// ---- Pages

async function writePages(folder, assets, headings) {
  const { Eleventy } = await import("@11ty/eleventy");
  const titles = Object.fromEntries(listed.map((page) => [page, titleOf(page)]));
  const about = (page) => ({ page, title: titles[page], address: base + addressOf(page) });
  const sections = contents.map(({ section, pages }) => ({ section, pages: pages.map(about) }));
  const markdown = await markdownWith(headings);
  const eleventy = new Eleventy(docs, folder, {
    quietMode: true,
    configPath: null,
    config(settings) {
      settings.setUseGitIgnore(false);
      settings.setTemplateFormats(["md"]);
      settings.setIncludesDirectory(relative(docs, sources));
      settings.ignores.add(join(docs, "decisions"));
      settings.setLibrary("md", markdown);
      // the pages are plain Markdown, and may hold braces
      settings.addGlobalData("layout", "page.njk");
      settings.addGlobalData("sections", sections);
      settings.addGlobalData("assets", assets);
      settings.addGlobalData("eleventyComputed", {
        permalink: ({ page }) => {
          const name = nameOf(page.inputPath);
          return listed.includes(name) && `${addressOf(name)}index.html`;
        },
        here: ({ page }) => around(nameOf(page.inputPath), about),
      });
      settings.addFilter("outline", outlineOf);
      settings.addPassthroughCopy({ [join(docs, "guide/pictures")]: "pictures" });
      return { markdownTemplateEngine: false };
    },
  });
  eleventy.disableLogger();
  await eleventy.write();
}

/** The second-level headings of a page that has been rendered. */
const outlineOf = (html) =>
  [...html.matchAll(/<h2 id="([^"]+)"[^>]*>(.*?)<\/h2>/g)].map(([, id, title]) => ({ id, title }));

const nameOf = (inputPath) => relative(docs, join(process.cwd(), inputPath)).replace(/\.md$/, "");

/** A page with its neighbours in the order of the contents. */
function around(page, about) {
  const at = listed.indexOf(page);
  if (at < 0) return {};
  const [before, after] = [listed[at - 1], listed[at + 1]];
  return { ...about(page), before: before && about(before), after: after && about(after) };
}

/** The identifier of a heading, as code hosts make it, so that links within the sources work there too. */
const slugOf = (text) =>
  text
    .toLowerCase()
    .replace(/[^\p{L}\p{N}\s_-]/gu, "")
    .trim()
    .replace(/\s/g, "-");

async function markdownWith(headings) {
  const { default: markdownIt } = await import("markdown-it");
  const { default: anchors } = await import("markdown-it-anchor");
  const prism = required("prismjs");
  required("prismjs/components/index.js")([
    "bash",
    "python",
    "typescript",
    "go",
    "json",
    "yaml",
    "toml",
    "ini",
    "nginx",
    "docker",
    "graphql",
  ]);
  const names = { sh: "bash", ts: "typescript", js: "javascript", dockerfile: "docker" };
  const markdown = markdownIt({
    highlight(code, language) {
      const name = names[language] ?? language;
      const grammar = prism.languages[name];
      return grammar ? prism.highlight(code, grammar, name) : "";
    },
  });
  markdown.use(anchors, { slugify: slugOf, tabIndex: false });
  markdown.core.ruler.push("links", (state) => {
    for (const token of state.tokens) if (token.children) token.children = linked(token.children, state.env);
  });
  markdown.core.ruler.push("headings", (state) => gather(state, headings));
  const fence = markdown.renderer.rules.fence;
  markdown.renderer.rules.fence = (tokens, at, options, env, self) => {
    const [, file] = /\bfile=(\S+)/.exec(tokens[at].info) ?? [];
    const label = file ? `<div class="file">${markdown.utils.escapeHtml(file)}</div>` : "";
    const kind = / output\b/.test(tokens[at].info) ? "block output" : "block";
    // what scrolls must be reachable by keyboard
    const code = fence(tokens, at, options, env, self).replace("<pre>", '<pre tabindex="0">');
    return `<div class="${kind}">${label}${code}</div>`;
  };
  const inline = markdown.renderer.rules.code_inline;
  // long paths and names may break, so that tables fit
  markdown.renderer.rules.code_inline = (...args) =>
    inline(...args).replaceAll(/(?<=>[^<]*)[/_](?=\w)/g, (mark) => `${mark}<wbr>`);
  markdown.renderer.rules.table_open = () => '<div class="wide" tabindex="0"><table>';
  markdown.renderer.rules.table_close = () => "</table></div>";
  return markdown;
}

/** Links between Markdown files become links between pages; what lies outside the guide keeps only its text. */
function linked(tokens, env) {
  const open = [];
  return tokens.filter((token) => {
    if (token.type === "image") token.attrSet("src", base + token.attrGet("src"));
    if (token.type === "link_close") return open.pop();
    if (token.type !== "link_open") return true;
    const href = addressed(token.attrGet("href"), nameOf(env.page.inputPath));
    if (href) token.attrSet("href", href);
    open.push(href !== undefined);
    return href !== undefined;
  });
}

function addressed(href, page) {
  if (/^(https?:|#)/.test(href)) return href;
  if (href.startsWith("/")) return href;
  const [path, hash] = href.split("#");
  const target = posix.join(dirname(page), path).replace(/\.md$/, "");
  if (!listed.includes(target)) return undefined;
  return base + addressOf(target) + (hash ? `#${hash}` : "");
}

// ---- Search

/** Notes each part of a page, from one heading to the next, with its text. */
function gather({ tokens, env }, headings) {
  const page = nameOf(env.page.inputPath);
  if (!listed.includes(page)) return;
  for (const [at, token] of tokens.entries()) {
    if (token.type === "heading_open") {
      const id = token.attrGet("id");
      headings.push({ page, id, level: Number(token.tag[1]), title: textOf(tokens[at + 1]), text: "" });
    } else if (token.type === "inline" && tokens[at - 1].type !== "heading_open") {
      headings.at(-1).text += `${textOf(token)} `;
    } else if (token.type === "fence") headings.at(-1).text += `${token.content} `;
  }
}

const textOf = (token) => token.children.map(({ content }) => content).join(" ");

async function searchIndex(headings) {
  const { default: MiniSearch } = await import("minisearch");
  const { searchOptions } = await import(join(sources, "search-options.ts"));
  const index = new MiniSearch(searchOptions);
  const parts = headings.map(({ page, id, level, title, text }, at) => ({
    id: at,
    title,
    page: titleOf(page),
    text,
    address: base + addressOf(page) + (level === 1 ? "" : `#${id}`),
  }));
  index.addAll(parts);
  return index;
}

function compress(folder, files) {
  for (const file of files) {
    const bytes = readFileSync(join(folder, file));
    const quality = { params: { [constants.BROTLI_PARAM_QUALITY]: 9 } };
    writeFileSync(join(folder, `${file}.br`), brotliCompressSync(bytes, quality));
    writeFileSync(join(folder, `${file}.gz`), gzipSync(bytes));
  }
}

if (process.argv[1] === import.meta.filename) await buildGuide();
