// Large inputs and outputs, 20 at once: how fast they are accepted, and how much memory they need.
import { entry } from "../entries.mjs";
import { forgetPeak, peakBytes, residentBytes } from "../proc.mjs";
import { makeFolder, startAgent } from "../processes.mjs";
import { makePuppets } from "../puppets.mjs";
import { interleave } from "../rounds.mjs";
import { authorized } from "./run.mjs";

const least = { must: 0.4, aim: 0.7 };
const most = { must: 3 };
const atOnce = 20;
const megabyte = 1_000_000;
const sizes = { input: 10, output: 20 };
const totalMb = atOnce * (sizes.input + sizes.output);
/** The most bytes in flight at a time: the outputs. */
const inFlightBytes = atOnce * sizes.output * megabyte;

export const row = {
  name: "large",
  words: "10 MB inputs and 20 MB outputs, 20 at once, against a bare server that stores them in files",
  async measure({ services, databases, rounds, onRound, scope }) {
    const client = await startClient(scope);
    const taker = await startAgent(scope, "agents/taker.mjs");
    const sides = {};
    for (const database of databases) {
      const server = await services.startMillrace(scope, database);
      sides[database] = await largeJobs({ server, client, taker }, scope);
    }
    const bare = await startAgent(scope, "bare/files.mjs");
    const url = await bare.ask("start", makeFolder(scope));
    sides.bare = async () => {
      const input = await client.ask("send", { urls: Array(atOnce).fill(url), body: "input" });
      const output = await client.ask("send", { urls: Array(atOnce).fill(url), body: "output" });
      return { rate: totalMb / (input.seconds + output.seconds) };
    };
    const found = await interleave(sides, { rounds: Math.min(rounds, 3), onRound });
    return databases.flatMap((database) => entriesOf(database, found[database], found.bare));
  },
};

/** A process that sends prepared inputs and outputs. */
export async function startClient(scope) {
  const client = await startAgent(scope, "agents/large-client.mjs");
  await client.ask("prepare", [
    { name: "input", open: '{"input":{"data":"', close: '"}}', bytes: sizes.input * megabyte },
    { name: "output", open: '{"output":"', close: '"}', bytes: sizes.output * megabyte },
  ]);
  return client;
}

/** What one round with a server does. */
export async function largeJobs({ server, client, taker }, scope) {
  const puppets = await makePuppets(scope, server, 1);
  const [worker] = await puppets.addresses();
  const restBytes = residentBytes(server.pid);
  return () => through({ server, restBytes, endpoint: puppets.endpoint, worker, client, taker });
}

/** Submits the inputs, takes them one after another, and posts the outputs. */
async function through({ server, restBytes, endpoint, worker, client, taker }) {
  const runUrl = `${server.url}/v2/${endpoint}/run`;
  forgetPeak(server.pid);
  const input = await client.ask("send", { urls: Array(atOnce).fill(runUrl), headers: authorized, body: "input" });
  const ids = await taker.ask("take", { worker, count: atOnce });
  const urls = ids.map((id) => worker.done.replace("$ID", id));
  const output = await client.ask("send", { urls, body: "output" });
  return {
    rate: totalMb / (input.seconds + output.seconds),
    inputRate: (atOnce * sizes.input) / input.seconds,
    outputRate: (atOnce * sizes.output) / output.seconds,
    memory: (peakBytes(server.pid) - restBytes) / inFlightBytes,
    refused: input.refused + output.refused,
  };
}

function entriesOf(database, ours, theirs) {
  const rates = (name) => ours.map((each) => each[name]);
  const mean = (name) => Math.round(rates(name).reduce((sum, rate) => sum + rate, 0) / ours.length);
  const refused = ours.reduce((sum, each) => sum + each.refused, 0) / ours.length;
  const memory = rates("memory");
  return [
    entry({
      database,
      what: `${atOnce} inputs of ${sizes.input} MB, ${atOnce} outputs of ${sizes.output} MB at once, /run and job-done`,
      unit: "MB/s",
      ours: rates("rate"),
      theirs: theirs.map(({ rate }) => rate),
      against: "bare node:http to files, fsync",
      least,
      note: `inputs ${mean("inputRate")} MB/s, outputs ${mean("outputRate")} MB/s; ${refused.toFixed(1)} of ${2 * atOnce} a round were answered 503 and sent again after a second`,
    }),
    entry({
      database,
      what: "peak memory growth by that, over the bytes in flight",
      unit: "×",
      ours: memory,
      figure: { value: Math.max(...memory), unit: "×" },
      most,
    }),
  ];
}
