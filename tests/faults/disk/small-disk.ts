import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, statfsSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

const mib = 2 ** 20;
/** Room for the reserves of the server (80 MB) and for what a campaign stores. */
const diskBytes = 512 * mib;

/** A small file system that can be filled to its last byte. Mounting one needs root. */
export class SmallDisk {
  readonly folder = mkdtempSync(join(tmpdir(), "millrace-disk-"));

  /** Undefined if this process may not mount. */
  static mount(): SmallDisk | undefined {
    const disk = new SmallDisk();
    const words = ["-t", "tmpfs", "-o", `size=${diskBytes},mode=700`, "tmpfs", disk.folder];
    if (spawnSync("mount", words).status === 0) return disk;
    rmSync(disk.folder, { recursive: true });
    return undefined;
  }

  /** Leaves no free byte. */
  fill(): void {
    const filler = join(this.folder, "filler");
    for (;;) {
      const { bavail, bsize } = statfsSync(this.folder);
      if (bavail === 0) return;
      try {
        writeFileSync(filler, Buffer.alloc(Math.min(bavail * bsize, 16 * mib), 1), { flag: "a" });
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code === "ENOSPC") return;
        throw error;
      }
    }
  }

  /** Frees the space that `fill` used. */
  empty(): void {
    rmSync(join(this.folder, "filler"), { force: true });
  }

  end(): void {
    // A lazy unmount: a keeper that has just lost its directory may not have exited yet.
    const done = spawnSync("umount", ["-l", this.folder], { encoding: "utf8" });
    if (done.status !== 0) throw new Error(`The small disk could not be unmounted: ${done.stderr}`);
    rmSync(this.folder, { recursive: true });
  }
}
