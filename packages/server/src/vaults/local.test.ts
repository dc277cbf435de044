import { randomBytes } from "node:crypto";
import { Webhook } from "standardwebhooks";
import { describe, expect, it } from "vitest";
import { limits } from "../limits/index.js";
import { localVault } from "./local.js";

const vault = localVault(randomBytes(32));

describe("The vault", () => {
  it.each(["", "secret", "é漢😀\u0000", "x".repeat(100_000)])("opens what it sealed", (text) => {
    expect(vault.open(vault.seal(text)) === text).toBe(true);
  });

  it("reveals nothing about a text, not even that two texts are equal", () => {
    const [one, two] = [vault.seal("the password"), vault.seal("the password")];
    expect(one).not.toBe(two);
    expect(Buffer.from(one.slice(one.indexOf(":") + 1), "base64").toString("latin1")).not.toContain("password");
  });

  it("opens nothing that another key sealed", () => {
    expect(() => localVault(randomBytes(32)).open(vault.seal("secret"))).toThrow();
  });

  it("opens nothing of which any byte was changed", () => {
    const sealed = vault.seal("secret");
    const start = sealed.indexOf(":") + 1;
    const bytes = Buffer.from(sealed.slice(start), "base64");
    for (let at = 0; at < bytes.length; at++) {
      const changed = Buffer.from(bytes);
      changed[at]! ^= 1;
      expect(() => vault.open(sealed.slice(0, start) + changed.toString("base64"))).toThrow();
    }
    expect(() => vault.open("never sealed")).toThrow();
  });

  it("hashes by SHA-256, texts and bytes alike", () => {
    const hash = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
    expect([vault.hash("abc"), vault.hash(Buffer.from("abc"))]).toEqual([hash, hash]);
  });

  it("recognises equal hashes", () => {
    const [one, two] = [vault.hash("a"), vault.hash("b")];
    expect([vault.equal(one, vault.hash("a")), vault.equal(one, two), vault.equal(one, one.slice(1))]).toEqual([
      true,
      false,
      false,
    ]);
  });

  it("makes the same checksum for the same text and key, and a different one for any other", () => {
    const sum = vault.mac("text");
    expect(sum).toMatch(/^[0-9a-f]{64}$/);
    expect(
      [vault.mac("text"), vault.mac("texts"), localVault(randomBytes(32)).mac("text")].map((each) => each === sum),
    ).toEqual([true, false, false]);
  });

  it("makes signatures that the Standard Webhooks library accepts", async () => {
    const secret = `whsec_${randomBytes(24).toString("base64")}`;
    const now = Date.now();
    const payload = '{"id":"job-1","output":"é"}';
    const headers = await vault.sign([secret], "msg_1", now, [Buffer.from(payload)]);
    expect(headers).toMatchObject({ "webhook-id": "msg_1", "webhook-timestamp": `${Math.floor(now / 1_000)}` });
    expect(new Webhook(secret).verify(payload, headers)).toEqual({ id: "job-1", output: "é" });
    expect(() => new Webhook(secret).verify(`${payload} `, headers)).toThrow();
  });

  it("signs with each of several secrets, any of which its receiver may have", async () => {
    const secrets = [24, 24].map((bytes) => `whsec_${randomBytes(bytes).toString("base64")}`);
    const headers = await vault.sign(secrets, "msg_1", Date.now(), [Buffer.from("{}")]);
    expect(headers["webhook-signature"]?.split(" ")).toHaveLength(2);
    for (const secret of secrets) expect(new Webhook(secret).verify("{}", headers)).toEqual({});
    expect(() => new Webhook(`whsec_${randomBytes(24).toString("base64")}`).verify("{}", headers)).toThrow();
  });

  it("signs pieces as if they were one text, and lets other work run between slices", async () => {
    const secret = `whsec_${randomBytes(24).toString("base64")}`;
    const text = `"${"é".repeat(limits.webhookPieceBytes)}"`;
    const bytes = Buffer.from(text);
    const now = Date.now();
    let turns = 0;
    let next = setImmediate(function count() {
      turns++;
      next = setImmediate(count);
    });
    const headers = await vault.sign([secret], "msg_1", now, [bytes]);
    clearImmediate(next);
    expect(turns).toBeGreaterThanOrEqual(2);
    const pieces = [bytes.subarray(0, 7), bytes.subarray(7, 2_000_000), bytes.subarray(2_000_000)];
    expect(await vault.sign([secret], "msg_1", now, pieces)).toEqual(headers);
    expect(() => new Webhook(secret).verify(text, headers)).not.toThrow();
  });
});
