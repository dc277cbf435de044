// The load generator: sends requests over and over on keep-alive connections, one at a time on each. It works with
// plain sockets and bytes: an HTTP client is as slow as the measured servers, and would measure itself.
import { connect } from "node:net";
import { performance } from "node:perf_hooks";
import { obey } from "../obey.mjs";

const blank = Buffer.from("\r\n\r\n");
const digitTwo = 0x32;
const closingBrace = 0x7d;

/** The bytes of each request, made once. A plan has one `path`, or several `paths` to use in turn. */
function requestsOf({ url, method = "POST", paths, headers = {}, body }) {
  const { host, pathname, search } = new URL(url);
  const all = {
    host,
    ...(body === undefined ? {} : { "content-type": "application/json", "content-length": Buffer.byteLength(body) }),
    ...headers,
  };
  const head = Object.entries(all).map(([name, value]) => `${name}: ${value}\r\n`);
  return (paths ?? [pathname + search]).map((path) =>
    Buffer.from(`${method} ${path} HTTP/1.1\r\n${head.join("")}\r\n${body ?? ""}`),
  );
}

/** The length of the whole answer that begins with `bytes`; undefined until its head has arrived. */
function lengthOf(bytes) {
  const bodyAt = bytes.indexOf(blank) + blank.length;
  if (bodyAt < blank.length) return undefined;
  const head = bytes.toString("latin1", 0, bodyAt);
  const length = Number(/\r\ncontent-length: *(\d+)/i.exec(head)?.[1]);
  if (!(length >= 0)) throw new Error(`An answer has no length: ${head}`);
  return bodyAt + length;
}

/** Sends until `seconds` have passed, or `count` requests were sent. */
async function run(plan) {
  const { url, connections, seconds, count: countMax, wantsTimes = false } = plan;
  const { hostname, port } = new URL(url);
  const requests = requestsOf(plan);
  const times = [];
  let sent = 0;
  let count = 0;
  let bad = 0;
  let firstBad;
  const beganAt = performance.now();
  const cpuBefore = process.cpuUsage();
  const isOver = () => (countMax === undefined ? performance.now() - beganAt >= seconds * 1_000 : sent >= countMax);

  const runConnection = () =>
    new Promise((resolve, reject) => {
      const socket = connect({ host: hostname, port: Number(port), noDelay: true });
      let received;
      let wholeLength;
      let sentAt = 0;
      const next = () => {
        if (isOver()) return socket.end(resolve);
        if (wantsTimes) sentAt = performance.now();
        socket.write(requests[sent++ % requests.length]);
      };
      const finish = (answer) => {
        if (wantsTimes) times.push(performance.now() - sentAt);
        if (answer[9] === digitTwo) count += 1;
        else {
          bad += 1;
          firstBad ??= answer.toString("latin1", 0, 300);
        }
        next();
      };
      socket.on("data", (part) => {
        // Nearly all answers are as long as the previous one, and arrive whole.
        if (received === undefined && part.length === wholeLength && part.at(-1) === closingBrace) return finish(part);
        received = received === undefined ? part : Buffer.concat([received, part]);
        wholeLength = lengthOf(received);
        if (wholeLength === undefined || received.length < wholeLength) return;
        const whole = received;
        received = undefined;
        finish(whole);
      });
      socket
        .once("connect", next)
        .once("error", reject)
        .once("close", () => reject(new Error(`${url} hung up.`)));
    });

  await Promise.all(Array.from({ length: connections }, runConnection));
  const tookSeconds = (performance.now() - beganAt) / 1_000;
  if (bad > 0) throw new Error(`${bad} of ${bad + count} requests were not answered 200: ${firstBad}`);
  const { user, system } = process.cpuUsage(cpuBefore);
  return {
    count,
    seconds: tookSeconds,
    perSecond: count / tookSeconds,
    cores: (user + system) / 1e6 / tookSeconds,
    times,
  };
}

obey({ run });
