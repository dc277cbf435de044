#!/usr/bin/env node
// Speaks as xfs_quota 6.1 was seen to on XFS and ext4, to what projectQuota says; state and orders lie beside it.
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";

const home = dirname(process.argv[1]);
const state = JSON.parse(readFileSync(join(home, "state.json"), "utf8"));
const [x, f, D, none, P, also, ...rest] = process.argv.slice(2);
if (`${x} ${f} ${D} ${none} ${P} ${also}` !== "-x -f -D /dev/null -P /dev/null") process.exit(64);
const mount = rest.pop();
if (mount !== state.mount) {
  console.error(`xfs_quota: cannot setup path for mount ${mount}: No such device or address`);
  process.exit(1);
}
let code = 0;
const refuse = (words) => {
  console.error(`xfs_quota: ${words}`);
  code = 1;
};
for (let at = 0; at < rest.length; at += 2) {
  if (rest[at] !== "-c") process.exit(64);
  const command = rest[at + 1];
  const [, shallow, path, project] = /^project (-d 0 )?-s -p (\S+) (\d+)$/.exec(command) ?? [];
  const [, checked, expected] = /^project -c -d 0 -p (\S+) (\d+)$/.exec(command) ?? [];
  const [, bytes, limited] = /^limit -p bhard=(\d+) (\d+)$/.exec(command) ?? [];
  const [, shown] = /^quota -p -N -b -v (\d+)$/.exec(command) ?? [];
  if (command === "state -p") {
    console.log(
      `Project quota state on ${mount} (/dev/vda)\n  Accounting: ON\n  Enforcement: ${state.isOff ? "OFF" : "ON"}`,
    );
  } else if (checked !== undefined) {
    if (state.projects[checked] !== expected)
      console.log(`${checked} - project identifier is not set (inode=0, tree=${expected})`);
  } else if (project !== undefined) {
    if (!existsSync(path)) {
      console.error(`xfs_quota: cannot setup path for project dir ${path}: No such file or directory`); // and goes on, with 0
      continue;
    }
    console.log(`Setting up project ${project} (path ${path})...`);
    console.log("Processed 1 (/etc/projects and cmdline) paths for project 1 with recursion depth infinite (-1).");
    if (state.isRefused) refuse(`cannot set project on ${path}: Operation not permitted`);
    else if (shallow === undefined && state.isExt4)
      refuse(`cannot set project on ${path}/weights: Operation not supported`);
    else if (state.hasSocket) console.error(`xfs_quota: skipping special file ${path}/socket`);
    if (!state.isRefused) state.projects[path] = project;
  } else if (limited !== undefined) {
    if (state.isRefused) refuse("cannot set limits: Operation not permitted");
    else if (!state.isDeaf) state.limits[limited] = Math.floor(Number(bytes) / 1_024);
  } else if (shown !== undefined) {
    const hard = state.limits[shown];
    if (hard)
      console.log(
        `${state.device ?? "/dev/vda"}                  4096          0      ${hard}   00 [--------] ${mount}`,
      );
  } else process.exit(64);
}
writeFileSync(join(home, "state.json"), JSON.stringify(state));
process.exit(code);
