import { describe, expect, it } from "vitest";
import { overflow, violations } from "../looks.js";
import { makeEndpoint, press, sees, signIn, useDashboard } from "./visit.js";

const dashboard = useDashboard({ MILLRACE_RATE_LIMITS: "off", MILLRACE_STOP_GRACE: "1" });
const tells = () => dashboard.handler("export default () => process.env.TOKEN ?? 1;");

describe("A secret", () => {
  it("gets another value and another description, and the page shows no value", async () => {
    const { id } = await dashboard.api("POST", "/v1/secrets", { name: "TOKEN", value: "old-value" });
    const page = await dashboard.visit("/secrets");
    await page.getByRole("link", { name: "TOKEN", exact: true }).click();
    const dialog = page.getByRole("dialog");
    await dialog.getByLabel("value").fill("new-value");
    await dialog.getByLabel("description").fill("of a test");
    await dialog.getByText("a new value").waitFor();
    expect(await dialog.textContent()).not.toContain("new-value");
    expect(await violations(page)).toEqual([]);
    await page.setViewportSize({ width: 360, height: 740 });
    await expect.poll(() => overflow(page)).toBe(0);
    await press(page, "Save");
    await page.getByRole("status").getByText("Saved.").waitFor();
    expect(await dashboard.api("GET", `/v1/secrets/${id}`)).toMatchObject({ description: "of a test" });

    const endpoint = await makeEndpoint(dashboard, tells(), {
      name: "tells",
      env: { TOKEN: "x{{ RUNPOD_SECRET_TOKEN }}" },
    });
    const { output } = await dashboard.api("POST", `/v2/${endpoint}/runsync`, { input: {} });
    expect(output).toBe("xnew-value");
  });

  it("loses its description when the field is emptied", async () => {
    const made = { name: "DESCRIBED", value: "12345678", description: "of a test" };
    const { id } = await dashboard.api("POST", "/v1/secrets", made);
    const page = await dashboard.visit(`/secrets?open=${id}`);
    await page.getByRole("dialog").getByLabel("description").fill("");
    await press(page, "Save");
    await page.getByRole("status").getByText("Saved.").waitFor();
    expect((await dashboard.api("GET", `/v1/secrets/${id}`)).description).toBe("");
  });
});

describe("An admin", () => {
  it("sees another user's keys, and revokes one", async () => {
    const user = await dashboard.api("POST", "/v1/users", { name: "Team two", role: "member" });
    const { key } = await dashboard.api("POST", "/v1/apikeys", { name: "of-team-two", userId: user.id });
    const page = await dashboard.visit("/keys");
    await page.getByLabel("Keys of").selectOption("Team two");
    await page.getByRole("row").filter({ hasText: "of-team-two" }).getByRole("button", { name: "Delete" }).click();
    await page.getByRole("dialog").getByLabel("Type of-team-two to go on").fill("of-team-two");
    await page.getByRole("dialog").getByRole("button", { name: "Delete" }).click();
    await sees(page, "No keys.");
    const other = await dashboard.visit("/", { key: null, provoked: /^401 GET/ });
    await signIn(other, key);
    await other.getByRole("alert").getByText("This server does not know that key.").waitFor();
  });

  it("takes a quota away by emptying its field, and the others stay", async () => {
    const quotas = { workers: 10, gpus: 4 };
    const { id } = await dashboard.api("POST", "/v1/users", { name: "Team three", role: "member", quotas });
    const page = await dashboard.visit(`/users?open=${id}`);
    await page.getByRole("dialog").getByLabel("workers").fill("");
    const changes = page.getByRole("dialog").locator(".changes");
    await changes.getByText("quotas.workers").waitFor();
    expect(await changes.textContent()).not.toContain("gpus");
    await press(page, "Save");
    await page.getByRole("status").getByText("Saved.").waitFor();
    expect((await dashboard.api("GET", `/v1/users/${id}`)).quotas).toEqual({ gpus: 4 });
  });

  it("ends a key at once, and the page goes on with the new one", async () => {
    const { key } = await dashboard.api("POST", "/v1/apikeys", { name: "leaked", scope: "all" });
    const page = await dashboard.visit("/keys", { key: null, provoked: /^401 GET|^failed: GET .*events$/ });
    await signIn(page, key);
    await page.getByRole("row").filter({ hasText: "leaked" }).getByRole("button", { name: "Rotate" }).click();
    const dialog = page.getByRole("dialog");
    await dialog.getByLabel("The old key").selectOption("ends at once");
    expect(await violations(page)).toEqual([]);
    await dialog.getByRole("button", { name: "Rotate" }).click();
    const fresh = (await page.locator("code.once").textContent()) ?? "";
    await press(page, "I have kept it");
    await page.getByRole("link", { name: "Users", exact: true }).click();
    await sees(page, "admin");
    const says = async (of: string) =>
      (await fetch(`${dashboard.server.url}/v1/secrets`, { headers: { authorization: `Bearer ${of}` } })).status;
    expect([await says(key), await says(fresh)]).toEqual([401, 200]);
  });
});

describe("A template that another user shares", () => {
  it("is listed apart, and an endpoint is made from it", async () => {
    const author = await dashboard.api("POST", "/v1/users", { name: "Author", role: "member" });
    const { key } = await dashboard.api("POST", "/v1/apikeys", { name: "author", userId: author.id });
    const reader = await dashboard.api("POST", "/v1/users", { name: "Reader", role: "member" });
    const { key: readers } = await dashboard.api("POST", "/v1/apikeys", { name: "reader", userId: reader.id });
    const reply = await fetch(`${dashboard.server.url}/v1/templates`, {
      method: "POST",
      headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
      body: JSON.stringify({ name: "for everybody", imageName: "team/image:1", isServerless: true, isPublic: true }),
    });
    expect(reply.status).toBe(200);
    const { id } = (await reply.json()) as { id: string };
    const page = await dashboard.visit("/templates", { key: readers });
    const row = page.getByRole("region", { name: "Shared by other users" }).getByRole("row").filter({ hasText: id });
    await row.waitFor();
    expect(await violations(page)).toEqual([]);
    expect(await row.getByRole("button", { name: "Delete" }).count()).toBe(0);
    await row.getByRole("link", { name: "New endpoint" }).click();
    await page.getByLabel("name", { exact: true }).fill("from-another");
    await press(page, "Create");
    await page.waitForURL(/\/endpoints\/\w+\/try/);
  });
});

describe("A key that may not do everything", () => {
  it.each([
    ["read", "This key may only read"],
    [{ endpoints: [] as object[] }, "This key is for the jobs of chosen endpoints"],
  ])("is told so before anything is tried: %j", async (given, words) => {
    const id = await makeEndpoint(dashboard, tells(), { name: `seen by ${typeof given}` });
    const scope = typeof given === "string" ? given : { endpoints: [{ id, access: "run" }] };
    const { key } = await dashboard.api("POST", "/v1/apikeys", { name: "some", scope });
    const page = await dashboard.visit("/", { key, provoked: /^401 GET/ });
    await sees(page, words);
    expect(await violations(page)).toEqual([]);
  });
});

describe("The SSH keys of pods", () => {
  it("are kept as they are typed, a line each; what is none is refused with the reason", async () => {
    const kept = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIKept me@laptop";
    const page = await dashboard.visit("/server", { provoked: /^422 PUT/ });
    const field = page.getByLabel("public keys");
    await field.fill("not a key");
    await press(page, "Save");
    await sees(page, /an SSH public key/);
    await field.fill(`${kept}\n\n`);
    await press(page, "Save");
    await page.getByRole("status").getByText("Saved.").waitFor();
    expect(await violations(page)).toEqual([]);
    expect((await dashboard.api("GET", "/v2/account/ssh-keys")).keys).toEqual([kept]);
    await field.fill("");
    await press(page, "Save");
    await expect.poll(async () => (await dashboard.api("GET", "/v2/account/ssh-keys")).keys).toEqual([]);
  });
});

describe("The audit log", () => {
  it("is narrowed to a user, a key and days, and the address keeps them", async () => {
    const user = await dashboard.api("POST", "/v1/users", { name: "Audited", role: "member" });
    const made = await dashboard.api("POST", "/v1/apikeys", { name: "audited", userId: user.id });
    await fetch(`${dashboard.server.url}/v1/secrets`, {
      method: "POST",
      headers: { authorization: `Bearer ${made.key}`, "content-type": "application/json" },
      body: JSON.stringify({ name: "AUDITED", value: "12345678" }),
    });
    const page = await dashboard.visit("/audit");
    const rows = page.getByRole("group", { name: "Changes" }).getByRole("row");
    await page.getByLabel("User").selectOption("Audited");
    await expect.poll(() => rows.count()).toBe(2); // with the head
    await rows.getByRole("link", { name: made.prefix }).click();
    await page.getByLabel("From").fill("2020-01-01");
    await expect.poll(() => page.url()).toMatch(/user=.*key=.*since=2020-01-01|key=.*since=2020-01-01.*user=/);
    await sees(page, `only the key ${made.id}`);
    expect(await violations(page)).toEqual([]);
    await expect.poll(() => rows.count()).toBe(2);
    await page.getByLabel("To").fill("2020-01-02");
    await sees(page, "No such change");
    await page.setViewportSize({ width: 360, height: 740 });
    await expect.poll(() => overflow(page)).toBe(0);
  });
});
