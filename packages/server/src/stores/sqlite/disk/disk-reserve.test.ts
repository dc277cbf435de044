import { existsSync, mkdtempSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { limits } from "../../../limits/index.js";
import { diskReserve } from "./disk-reserve.js";

describe("The reserve beside a database", () => {
  let directory: string;
  beforeEach(() => {
    directory = mkdtempSync(join(tmpdir(), "millrace-reserve-"));
  });
  afterEach(() => rmSync(directory, { recursive: true }));

  it("is a file of real bytes that only its owner can read, and can be released once", () => {
    const reserve = diskReserve(join(directory, "millrace.db"));
    const file = statSync(join(directory, "reserve"));
    expect([file.size, file.mode & 0o777]).toEqual([limits.diskReserveFileBytes, 0o600]);
    expect(file.blocks * 512).toBeGreaterThanOrEqual(limits.diskReserveFileBytes);
    expect([reserve.release(), reserve.release()]).toEqual([true, false]);
    expect(existsSync(join(directory, "reserve"))).toBe(false);
  });

  it("is made again when there is room, and then new jobs are accepted again", () => {
    diskReserve(join(directory, "millrace.db")).release();
    const reserve = diskReserve(join(directory, "millrace.db"));
    expect(reserve.hasRoom()).toBe(true);
    expect(existsSync(join(directory, "reserve"))).toBe(true);
  });
});
