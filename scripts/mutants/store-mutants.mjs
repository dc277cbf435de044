// biome-ignore-all lint/suspicious/noTemplateCurlyInString: the texts are parts of source files
/** Mutants of the stores: commits, takes, results and keys. */
export const storeMutants = [
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
        find: "WHERE endpoint_no = :endpointNo AND status = ${code.IN_QUEUE} AND expires_at > :now ORDER BY place",
        replace: "WHERE endpoint_no = :endpointNo AND status < ${code.COMPLETED} AND expires_at > :now ORDER BY place",
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
        find: "`endpoint_no = :endpointNo::bigint AND status = ${code.IN_QUEUE} AND expires_at > :now::bigint`",
        replace: "`endpoint_no = :endpointNo::bigint AND status < ${code.COMPLETED} AND expires_at > :now::bigint`",
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
        find: "WHERE endpoint_no = :endpointNo AND id = :jobId AND worker_no = :workerNo AND status = ${code.IN_PROGRESS} AND expires_at > :now RETURNING",
        replace:
          "WHERE endpoint_no = :endpointNo AND id = :jobId AND :workerNo IS NOT NULL AND status = ${code.IN_PROGRESS} AND expires_at > :now RETURNING",
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
        find: "AND j.id = w.id AND j.worker_no = w.worker_no AND j.status + 0 = ${code.IN_PROGRESS}\n",
        replace: "AND j.id = w.id AND j.status + 0 = ${code.IN_PROGRESS}\n",
      },
    ],
  },
  {
    name: "undoes-stops",
    breaks: "lets a server with old data undo another server's decision about a worker",
    patches: [{ file: "stores/tables/workers.ts", find: '.where("wanted", "in", from)', replace: "" }],
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
    name: "rings-before-commit-postgres",
    breaks: "makes workers look for a job before its submission is committed",
    database: "postgres",
    patches: [{ file: "stores/postgres/jobs/jobs.ts", find: "isInOrder: false", replace: "isInOrder: true" }],
  },
  {
    name: "takes-twice-postgres",
    breaks: "asks for all jobs again in its second query, not for the rest",
    database: "postgres",
    patches: [
      {
        file: "stores/postgres/jobs/take.ts",
        find: "asks: left(asks, found.jobs), floor: 0, room",
        replace: "asks, floor: 0, room",
      },
    ],
  },
  {
    name: "gives-later-starts-back-postgres",
    breaks: "gives a job back for the loss of an earlier start",
    database: "postgres",
    patches: [
      {
        file: "stores/postgres/jobs/change.ts",
        find: "AND j.status = ${code.IN_PROGRESS} AND j.starts = :starts AND j.worker_no = :workerNo",
        replace: "AND j.status = ${code.IN_PROGRESS} AND j.starts >= :starts AND j.worker_no = :workerNo",
      },
    ],
  },
];
