// A strict stand-in for nvidia-smi: it prints what the real one prints for the GPUs in a state file, with the same
// exit codes, and refuses what the real one refuses. `fake-nvidia-smi.ts` puts it on a PATH and writes its state:
//
//   gpus        [{ uuid, name, memoryMib, busId, mig?, health? }]; health: ok (default), reset (it needs a reset), lost,
//               unreachable
//   driver      "550.90.12"; before 525 one unreachable GPU ends the output for all
//   mode        ok, no-driver (9), no-library (12), mismatch (18), nvml (255), hang (prints nothing,
//               and ignores SIGTERM), held (killed, while a child still holds its pipes), garbage, flood
//   refused     fields that this driver does not support
//
// It supports --query-gpu with --format=csv[,noheader][,nounits], -i (index, UUID or bus id) and -L, and refuses
// anything else.
import { spawn } from "node:child_process";
import { appendFileSync, readFileSync, writeFileSync } from "node:fs";

const [stateFile, ...args] = process.argv.slice(2);
const { gpus, driver, mode, refused } = JSON.parse(readFileSync(stateFile, "utf8"));
appendFileSync(`${stateFile}.calls`, `${args.join(" ")}\n`);
writeFileSync(`${stateFile}.environment`, Object.keys(process.env).join("\n"));

/** All its output, errors included, goes to stdout. */
function end(code, ...lines) {
  process.stdout.write(lines.map((line) => `${line}\n`).join(""));
  process.exit(code);
}

const major = Number(driver.split(".")[0]);
const stopsAtUnreachable = major < 525;

/** field → its name in the header, and its value; `[N/A]` is printed for a value that a GPU does not have. */
const fields = {
  index: ["index", (gpu) => gpu.index],
  uuid: ["uuid", (gpu) => gpu.uuid],
  gpu_uuid: ["uuid", (gpu) => gpu.uuid],
  name: ["name", (gpu) => gpu.name],
  gpu_name: ["name", (gpu) => gpu.name],
  driver_version: ["driver_version", () => driver],
  "pci.bus_id": ["pci.bus_id", (gpu) => `0000${gpu.busId}`],
  "memory.total": ["memory.total", (gpu) => gpu.memoryMib, "MiB"],
  "memory.used": ["memory.used", (gpu) => (gpu.memoryMib === undefined ? undefined : 1), "MiB"],
  pstate: ["pstate", (gpu) => (gpu.health === "reset" ? "[GPU requires reset]" : "P8")],
  "temperature.gpu": ["temperature.gpu", (gpu) => (gpu.health === "reset" ? "[GPU requires reset]" : 34)],
  "utilization.gpu": ["utilization.gpu", (gpu) => (gpu.health === "reset" ? "[GPU requires reset]" : 0), "%"],
  "mig.mode.current": ["mig.mode.current", (gpu) => gpu.mig],
};

const invalid = () => end(2, "Invalid combination of input arguments. Please run 'nvidia-smi -h' for help.", "");

function parse() {
  const asked = { list: false, query: undefined, format: undefined, which: undefined };
  for (let at = 0; at < args.length; at++) {
    const [, name, value] = /^(--[\w-]+)=(.*)$/s.exec(args[at]) ?? [undefined, args[at], undefined];
    if (name === "--query-gpu" && value !== undefined) asked.query = value.split(",").map((field) => field.trim());
    else if (name === "--format" && value !== undefined) asked.format = value.split(",");
    else if (name === "--id" && value !== undefined) asked.which = value;
    else if (name === "-i" && value === undefined && args[at + 1] !== undefined) asked.which = args[++at];
    else if ((name === "-L" || name === "--list-gpus") && value === undefined) asked.list = true;
    else invalid();
  }
  if (asked.list === (asked.query !== undefined)) invalid();
  const [csv, ...more] = asked.format ?? [];
  if (asked.query && (csv !== "csv" || more.some((word) => !["noheader", "nounits"].includes(word)))) invalid();
  return asked;
}

/** The newest drivers name the index and the address, older drivers only the address. */
function unreachable({ index, busId, health }) {
  const who = major >= 550 ? `GPU${index}: ${busId}` : major >= 525 ? `GPU${busId}` : `GPU ${busId}`;
  const why = health === "lost" ? "GPU is lost.  Reboot the system to recover this GPU" : "Unknown Error";
  return `Unable to determine the device handle for ${who}: ${why}`;
}

function failWhole() {
  switch (mode) {
    case "no-driver":
      return end(
        9,
        "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver. Make sure that the latest NVIDIA driver is installed and running.",
        "",
      );
    case "no-library":
      return end(
        12,
        "NVIDIA-SMI couldn't find libnvidia-ml.so library in your system. Please make sure that the NVIDIA Display Driver is properly installed and present in your system.",
        "",
      );
    case "mismatch":
      return end(18, "Failed to initialize NVML: Driver/library version mismatch", "NVML library version: 580.173");
    case "nvml":
      return end(255, "Failed to initialize NVML: Unknown Error");
    case "garbage":
      return end(0, "Segmentation fault \u001b[31m(core dumped)");
    case "flood":
      return end(0, "x".repeat(1_000_000));
  }
}

/** Prints nothing until it is killed. */
function hang() {
  process.on("SIGTERM", () => {});
  setTimeout(() => process.exit(0), 60_000);
  if (mode !== "held") return;
  const holder = spawn(process.execPath, ["-e", "setTimeout(() => {}, 60_000)"], { stdio: "inherit", detached: true });
  writeFileSync(`${stateFile}.holder`, String(holder.pid));
}

function answer() {
  const { list, query, format, which } = parse();
  failWhole();
  const all = gpus.map((gpu, index) => ({ ...gpu, index }));
  const chosen = all.filter(
    ({ index, uuid, busId }) => which === undefined || [String(index), uuid, busId, `0000${busId}`].includes(which),
  );
  const strange = query?.find((field) => !Object.hasOwn(fields, field) || refused.includes(field));
  if (strange !== undefined) end(2, `Field "${strange}" is not a valid field to query.`, "");
  if (chosen.length === 0) end(6, "No devices were found");
  const isAway = ({ health }) => health === "lost" || health === "unreachable";
  const first = chosen.find(isAway);
  const code = first === undefined ? 0 : first.health === "lost" ? 15 : 255;
  if (first !== undefined && stopsAtUnreachable) end(code, unreachable(first));
  if (list)
    end(
      code,
      ...chosen.map((gpu) => (isAway(gpu) ? unreachable(gpu) : `GPU ${gpu.index}: ${gpu.name} (UUID: ${gpu.uuid})`)),
    );
  const hasUnits = !format.includes("nounits");
  const unitOf = (field) => (hasUnits && fields[field][2] ? ` ${fields[field][2]}` : "");
  const header = query.map(
    (field) => `${fields[field][0]}${hasUnits && fields[field][2] ? ` [${fields[field][2]}]` : ""}`,
  );
  const rows = chosen.flatMap((gpu) => {
    if (isAway(gpu)) return [unreachable(gpu), query.map(() => "[Unknown Error]").join(", ")];
    const values = query.map((field) => {
      const value = fields[field][1](gpu) ?? "[N/A]";
      return String(value).startsWith("[") ? value : `${value}${unitOf(field)}`;
    });
    return [values.join(", ")];
  });
  end(code, ...(format.includes("noheader") ? [] : [header.join(", ")]), ...rows);
}

if (mode === "hang" || mode === "held") hang();
else answer();
