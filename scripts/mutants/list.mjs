/**
 * Each mutant breaks one promise with small text changes. A `find` must occur exactly once in its file (under
 * packages/server/src): if the code has changed, the script says so, and the patch must be updated here. `tests` names
 * the folder whose tests run first (by default the stores'), `database` the database that a campaign uses (by default
 * SQLite).
 */
export const mutants = [
  {
    name: "answers-before-commit",
    breaks: "acknowledges a job before it is on disk",
    patches: [
      {
        file: "stores/sqlite/writing/transactions.ts",
        find: "  readonly #db: Database;",
        replace: "  readonly #db: Database;\n  late: unknown;",
      },
      {
        file: "stores/sqlite/writing/transactions.ts",
        find: 'this.#db.exec("BEGIN IMMEDIATE");',
        replace: 'if (this.late === undefined) this.#db.exec("BEGIN IMMEDIATE");',
      },
      {
        file: "stores/sqlite/writing/transactions.ts",
        find: 'this.#db.exec("COMMIT");',
        replace:
          'this.late ??= setTimeout(() => { this.late = undefined; try { this.#db.exec("COMMIT"); } catch {} }, 100);',
      },
    ],
  },
  {
    name: "answers-before-commit-postgres",
    breaks: "lets PostgreSQL acknowledge a commit before it is on disk",
    database: "postgres",
    patches: [
      {
        file: "stores/postgres/connection/connections.ts",
        find: '"synchronous_commit=on"',
        replace: '"synchronous_commit=off"',
      },
    ],
  },
  {
    name: "takes-without-guard",
    breaks: "takes a job in any state",
    patches: [
      {
        file: "stores/sqlite/jobs/job-statements.ts",
        find: "WHERE endpoint_no = ?3 AND status = 0 AND expires_at > ?2 ORDER BY place",
        replace: "WHERE endpoint_no = ?3 AND status < 2 AND expires_at > ?2 ORDER BY place",
      },
    ],
  },
  {
    name: "takes-without-guard-postgres",
    breaks: "takes a job in any state",
    database: "postgres",
    patches: [
      {
        file: "stores/postgres/jobs/take.ts",
        find: '"endpoint_no = $2::bigint AND status = 0 AND expires_at > $3::bigint"',
        replace: '"endpoint_no = $2::bigint AND status < 2 AND expires_at > $3::bigint"',
      },
    ],
  },
  {
    name: "takes-without-lock-postgres",
    breaks: "does not lock the jobs it takes against another server's take",
    database: "postgres",
    patches: [
      {
        file: "stores/postgres/jobs/take.ts",
        find: "ORDER BY place LIMIT (SELECT count(*) FROM slot) - (SELECT count(*) FROM back) FOR UPDATE SKIP LOCKED)",
        replace: "ORDER BY place LIMIT (SELECT count(*) FROM slot) - (SELECT count(*) FROM back))",
      },
    ],
  },
  {
    name: "completes-for-anyone",
    breaks: "records a result without checking who holds the job",
    patches: [
      {
        file: "stores/sqlite/jobs/job-statements.ts",
        find: "WHERE endpoint_no = ?3 AND id = ?4 AND worker_no = ?5 AND status = 1 AND expires_at > ?2 RETURNING",
        replace: "WHERE endpoint_no = ?3 AND id = ?4 AND ?5 IS NOT NULL AND status = 1 AND expires_at > ?2 RETURNING",
      },
    ],
  },
  {
    name: "completes-for-anyone-postgres",
    breaks: "records a result without checking who holds the job",
    database: "postgres",
    patches: [
      {
        file: "stores/postgres/jobs/settle.ts",
        find: "AND j.id = w.id AND j.worker_no = w.worker_no AND j.status + 0 = 1\n",
        replace: "AND j.id = w.id AND j.status + 0 = 1\n",
      },
    ],
  },
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
    name: "undoes-stops",
    breaks: "lets a server with old data undo another server's decision about a worker",
    patches: [{ file: "stores/tables/workers.ts", find: '.where("wanted", "in", from)', replace: "" }],
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
    name: "forgets-keys",
    breaks: "does not write the idempotency key with its job",
    patches: [
      {
        file: "stores/sqlite/jobs/jobs.ts",
        find: "sql.addKey.run(job.endpointNo, key.keyHash, key.bodyHash, key.route, no, job.id, key.expiresAt);",
        replace: "",
      },
    ],
  },
  {
    name: "forgets-keys-postgres",
    breaks: "does not write the idempotency key with its job",
    database: "postgres",
    patches: [
      {
        file: "stores/postgres/jobs/submit.ts",
        find: "WHERE key_hash IS NOT NULL ORDER BY endpoint_no, key_hash",
        replace: "WHERE key_hash IS NOT NULL AND false ORDER BY endpoint_no, key_hash",
      },
      {
        file: "stores/postgres/jobs/submit.ts",
        find: "FROM call WHERE key_hash IS NULL OR no IN (SELECT job_no FROM keyed)",
        replace: "FROM call",
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
    name: "rings-before-commit-postgres",
    breaks: "makes workers look for a job before its submission is committed",
    database: "postgres",
    patches: [{ file: "stores/postgres/jobs/jobs.ts", find: "isInOrder: false", replace: "isInOrder: true" }],
  },
  {
    name: "keeps-refused-places",
    breaks: "keeps counting a request that the servers' common limit refuses",
    tests: "packages/server/src/edges",
    patches: [
      {
        file: "edges/shared/access.ts",
        find: "    if (!isGranted) {\n      release();\n",
        replace: "    if (!isGranted) {\n",
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
    name: "takes-twice-postgres",
    breaks: "asks for all jobs again in its second query, not for the rest",
    database: "postgres",
    patches: [
      {
        file: "stores/postgres/jobs/take.ts",
        find: "left(asks, found.jobs), now, 0, room",
        replace: "left(asks, []), now, 0, room",
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
    name: "gives-later-starts-back-postgres",
    breaks: "gives a job back for the loss of an earlier start",
    database: "postgres",
    patches: [
      {
        file: "stores/postgres/jobs/change.ts",
        find: "WHERE j.endpoint_no = $2 AND j.no = $3 AND j.status = 1 AND j.starts = $4 AND j.worker_no = $5",
        replace: "WHERE j.endpoint_no = $2 AND j.no = $3 AND j.status = 1 AND j.starts >= $4 AND j.worker_no = $5",
      },
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
  {
    name: "keeps-seats-of-the-gone",
    breaks: "keeps counting a load-balanced request whose client has disconnected",
    tests: "packages/server/src/edges/gateway",
    patches: [
      {
        file: "edges/gateway/call.ts",
        find: 'else if ("worker" in found) this.#needs.gate.release(found, this.#isSocket, "retried");',
        replace: "else void found;",
      },
    ],
  },
  {
    name: "lets-expired-keys-in",
    breaks: "accepts a key that has expired or was rotated away",
    tests: "packages/server/src/edges/rest-v1/access.test.ts",
    patches: [
      {
        file: "domain/access/key.ts",
        find: "expiresAt !== undefined && expiresAt <= now;",
        replace: "expiresAt !== undefined && expiresAt <= now - 1e12;",
      },
    ],
  },
  {
    name: "lets-held-calls-live",
    breaks: "leaves requests and streams open after their key has ended",
    tests: "packages/server/src/edges/rest-v1/access.test.ts",
    patches: [
      {
        file: "lines/held-calls.ts",
        find: "for (const end of calls) end();",
        replace: "void calls;",
      },
    ],
  },
  {
    name: "shows-anyones-templates",
    breaks: "shows templates of other users",
    tests: "packages/server/src/edges/other-users.test.ts",
    patches: [
      {
        file: "operations/access/visible.ts",
        find: "const mine = registry.templates().filter((template) => own(caller, template));",
        replace: "const mine = registry.templates();",
      },
    ],
  },
  {
    name: "logs-secrets",
    breaks: "does not mask the secrets of a container's environment after a restart",
    tests: "packages/server/src/providers/docker/docker-provider.test.ts",
    patches: [
      {
        file: "providers/docker/logs.ts",
        find: "...hiddenTexts(env, hiddenOf(Config.Labels))]",
        replace: "]",
      },
    ],
  },
];
