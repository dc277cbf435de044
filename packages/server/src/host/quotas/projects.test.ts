import { copyFileSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import type { Quota } from "../quota.js";
import { mountOf } from "./mounts.js";
import { hasProjectQuotas, projectOf, projectQuota } from "./projects.js";

const gib = 2 ** 30;
const mount = { point: "/mnt/with a space", type: "xfs", hasProjects: true };

describe("On XFS or ext4 with project quotas, a volume's directory", () => {
  let home: string;
  let path: string;
  let quota: Quota;
  const state = () => JSON.parse(readFileSync(join(home, "state.json"), "utf8"));
  const order = (orders: object) => writeFileSync(join(home, "state.json"), JSON.stringify({ ...state(), ...orders }));

  beforeEach(async () => {
    home = mkdtempSync(join(tmpdir(), "millrace-projects-"));
    writeFileSync(join(home, "state.json"), JSON.stringify({ mount: mount.point, projects: {}, limits: {} }));
    copyFileSync(join(import.meta.dirname, "xfs-quota-fixture.mjs"), join(home, "xfs_quota"));
    vi.stubEnv("PATH", `${home}:${process.env.PATH}`);
    mkdirSync(join(home, "volumes"));
    path = join(home, "volumes", "volume00000001");
    quota = projectQuota(mount);
    await quota.make(path);
  });
  afterEach(() => {
    vi.unstubAllEnvs();
    rmSync(home, { recursive: true });
  });

  it("belongs to a separate project, limited to its size", async () => {
    expect(await quota.bound(path, 10 * gib)).toBeUndefined();
    const project = String(projectOf(path));
    expect(state()).toMatchObject({ projects: { volume00000001: project }, limits: { [project]: (10 * gib) / 1_024 } });
    expect(await quota.bound(path, 11 * gib)).toBeUndefined();
    expect(state().limits[project]).toBe((11 * gib) / 1_024);
    expect(await quota.bound(path, 0)).toBeUndefined();
    expect(state().limits[project]).toBe(0);
  });

  it("may hold files that cannot belong to a project: they are skipped", async () => {
    order({ hasSocket: true });
    expect(await quota.bound(path, gib)).toBeUndefined();
  });

  it("is limited on ext4 too, which does not mark existing files", async () => {
    order({ isExt4: true, device: `/dev/mapper/a--name--longer--than--its--column\n           ` });
    expect(await projectQuota({ ...mount, type: "ext4" }).bound(path, gib)).toBeUndefined();
  });

  it("is not traversed again once it belongs to its project", async () => {
    await quota.bound(path, gib);
    order({ isExt4: true }); // a tool that refuses to recurse
    expect(await quota.bound(path, 2 * gib)).toBeUndefined();
  });

  it("is limited only if the file system reports that it enforces limits", async () => {
    expect(await hasProjectQuotas(mount, home)).toMatchObject({ code: 0, isOn: true });
    order({ isOff: true });
    expect(await hasProjectQuotas(mount, home)).toMatchObject({ code: 0, isOn: false });
  });

  it.each([
    [{ isRefused: true }, /cannot set project on volume00000001: Operation not permitted\./],
    [{ isDeaf: true }, /the limit was not taken \(none\)/],
    [{ mount: "/elsewhere" }, /cannot setup path for mount/],
  ])("that cannot be limited says why (%o)", async (orders, why) => {
    order(orders);
    expect(await quota.bound(path, gib)).toMatch(why);
  });

  it("that is missing is not limited, even if the tool reports success", async () => {
    rmSync(path, { recursive: true });
    expect(await quota.bound(path, gib)).toMatch(/cannot setup path for project dir volume00000001/);
  });

  it("is removed with its limit", async () => {
    await quota.bound(path, gib);
    writeFileSync(join(path, "weights"), "1");
    await quota.remove(path);
    expect([existsSync(path), state().limits[projectOf(path)]]).toEqual([false, 0]);
    await quota.remove(path);
  });
});

describe("A project's number", () => {
  it("is unique to a name, above those that are given by hand", () => {
    const names = Array.from({ length: 1_000 }, (_, n) => `/data/volumes/${n.toString(36).padStart(14, "v")}`);
    const numbers = names.map(projectOf);
    expect(new Set(numbers).size).toBe(names.length);
    for (const number of numbers) {
      expect(number).toBeGreaterThanOrEqual(2 ** 30);
      expect(number).toBeLessThan(2 ** 31);
    }
    expect(projectOf("/elsewhere/volume00000001")).toBe(projectOf("/data/volumes/volume00000001"));
  });
});

describe("The mount of a directory", () => {
  const mounts = [
    "22 1 254:0 / / rw,relatime - ext4 /dev/vda rw",
    "40 22 7:0 / /srv rw,relatime shared:1 - xfs /dev/loop0 rw,attr2,inode64,logbufs=8,logbsize=32k,prjquota",
    "41 22 7:1 / /srv/data\\040disk rw,relatime - ext4 /dev/loop1 rw,prjquota",
    "42 40 7:2 / /srv/plain rw,relatime - xfs /dev/loop2 rw,attr2,inode64,noquota",
    "43 22 7:3 / /over rw - xfs /dev/loop3 rw,pquota",
    "44 43 7:4 / /over rw - tmpfs none rw",
    "",
  ].join("\n");

  it.each([
    ["/srv/volumes", "/srv", "xfs", true],
    ["/srv", "/srv", "xfs", true],
    ["/srvolumes", "/", "ext4", false],
    ["/srv/data disk/volumes", "/srv/data disk", "ext4", true],
    ["/srv/plain/volumes", "/srv/plain", "xfs", false],
    ["/over/volumes", "/over", "tmpfs", false],
  ])("of %s is %s", (path, point, type, hasProjects) => {
    expect(mountOf(mounts, path)).toEqual({ point, type, hasProjects });
  });

  it("is none if nothing is listed", () => expect(mountOf("", "/srv")).toBeUndefined());
});
