// A folder for the homes of users who run commands in tests, removed after the run: the processes of tests end without
// notice.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

export default function setUp() {
  const homes = mkdtempSync(join(tmpdir(), "millrace-homes-"));
  process.env.MILLRACE_TEST_HOMES = homes;
  return () => rmSync(homes, { recursive: true, force: true });
}
