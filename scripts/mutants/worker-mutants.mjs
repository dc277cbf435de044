/** Mutants of what happens to jobs and workers: loops, providers, bells and scaling. */
export const workerMutants = [
  {
    name: "never-watches",
    breaks: "never checks for lost workers",
    tests: "packages/server/src/loops",
    patches: [
      {
        file: "loops/workers/watch-workers.ts",
        find: "now < dueAt ? dueAt : await judge(needs, worker, now)",
        replace: "now < dueAt ? dueAt : (void judge, never)",
      },
    ],
  },
  {
    name: "never-sweeps-orphans",
    breaks: "loses a job that a take gave to a worker that had already ended",
    tests: "packages/server/src/loops",
    patches: [
      {
        file: "loops/workers/watch-workers.ts",
        find: "  await settleOrphans(needs, await needs.reader.orphaned(), true);",
        replace: "  void settleOrphans;",
      },
    ],
  },
  {
    name: "sleep-counts-as-absence",
    breaks: "ends the workers of a machine that was suspended, as if no server had come during that time",
    tests: "packages/server/src/providers/process",
    patches: [
      {
        file: "providers/process/away.ts",
        find: "if (gap > limits.clockGapMs) this.#since += gap;",
        replace: "void gap;",
      },
    ],
  },
  {
    name: "tells-no-other-server",
    breaks: "leaves jobs to the polls of closed workers, and does not notify other servers",
    tests: "packages/server/src/assembly",
    patches: [
      { file: "assembly/take-lines.ts", find: "      onLeft: () => bell.ringElsewhere(topic),\n", replace: "" },
    ],
  },
  {
    name: "kills-no-strangers",
    breaks: "leaves a worker running that a keeper does not know, because another keeper had started it",
    tests: "packages/server/src/providers/process",
    patches: [{ file: "providers/process/keeper.ts", find: "      await sweep.worker(call.id);\n", replace: "" }],
  },
  {
    name: "starts-unsure-workers-again",
    breaks: "starts a second process under the id of a worker that may have been started",
    tests: "packages/server/src/loops",
    patches: [
      {
        file: "loops/workers/tend-workers.ts",
        find: "const mayBegin = seen.isAbsent && ",
        replace: "const mayBegin = ",
      },
    ],
  },
  {
    name: "rings-before-commit",
    breaks: "notifies waiting clients before the result is stored",
    tests: "packages/server/src/operations",
    patches: [
      {
        file: "operations/jobs/finish-job.ts",
        find: "  const settled = await needs.jobs.settle(",
        replace: "  needs.bell.ring(topics.job(jobId));\n  const settled = await needs.jobs.settle(",
      },
      {
        file: "operations/jobs/finish-job.ts",
        find: "  if (settled) announceEnd(needs, worker.row.endpointNo, settled);",
        replace: "  if (settled) void announceEnd;",
      },
    ],
  },
  {
    name: "stops-paused-holders",
    breaks: "stops a paused worker that was given a job",
    tests: "packages/server/src/domain",
    patches: [
      {
        file: "domain/workers/leaving.ts",
        find: 'state === "paused" && held === 0',
        replace: 'state === "paused" && held >= 0',
      },
    ],
  },
  {
    name: "times-out-after-gaps",
    breaks: "times jobs out at once after the server stood still, before their results are heard",
    tests: "packages/server/src/loops",
    patches: [
      {
        file: "loops/expire-jobs.ts",
        find: "    judgeAt = needs.clock.now() + limits.absentAfterMs;\n  });",
        replace: "  });",
      },
    ],
  },
  {
    name: "ignores-late-words",
    breaks: "does not check a worker again after its late result",
    tests: "packages/server/src/operations",
    patches: [
      { file: "operations/jobs/finish-job.ts", find: '  else needs.bell.ring("workers");', replace: "  else void 0;" },
    ],
  },
  {
    name: "forgets-older-polls",
    breaks: "gives back jobs that an older poll of their worker is about to deliver",
    tests: "packages/server/src/operations",
    patches: [
      {
        file: "operations/jobs/take-jobs.ts",
        find: "Math.min(arrivedAt, ...[...worker.polls].map((poll) => poll.arrivedAt))",
        replace: "arrivedAt",
      },
    ],
  },
];
