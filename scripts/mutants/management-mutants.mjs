/** Mutants of what users, keys and pods may do, and of what is counted and charged. */
export const managementMutants = [
  {
    name: "lets-readers-change",
    breaks: "lets keys that may only read an endpoint's jobs submit and cancel them",
    tests: "packages/server/src/edges",
    patches: [
      {
        file: "domain/access/key.ts",
        find: 'accessOf(scope.access, endpointId) === "run"',
        replace: "accessOf(scope.access, endpointId) !== undefined",
      },
    ],
  },
  {
    name: "shows-chosen-keys-everything",
    breaks: "shows all of a user's endpoints to a key of chosen ones",
    tests: "packages/server/src/edges",
    patches: [
      {
        file: "domain/access/key.ts",
        find: 'scope.kind !== "endpoints" || accessOf(scope.access, endpointId) !== undefined;',
        replace: 'scope.kind !== "endpoints" || endpointId !== "";',
      },
    ],
  },
  {
    name: "shows-anyones-keys",
    breaks: "shows and changes the keys of other users",
    tests: "packages/server/src/edges",
    patches: [
      {
        file: "operations/access/save-key.ts",
        find: "if (!key || (key.ownerNo !== caller.ownerNo && !caller.isAdmin))",
        replace: "if (!key)",
      },
    ],
  },
  {
    name: "keeps-rotated-texts",
    breaks: "lets a rotated key's old text work beyond its overlap",
    tests: "packages/server/src/edges/rest-v1/access.test.ts",
    patches: [
      {
        file: "operations/access/save-key.ts",
        find: "const until = needs.clock.now() + overlapSeconds * 1_000;",
        replace: "const until = needs.clock.now() + overlapSeconds * 1_000_000;",
      },
    ],
  },
  {
    name: "ends-locked-pods",
    breaks: "stops, resets and deletes locked pods",
    tests: "packages/server/src/operations/pods",
    patches: [{ file: "operations/pods/save-pod.ts", find: "if (settings.pod.locked)", replace: "if (!settings.pod)" }],
  },
  {
    name: "keeps-changed-pods",
    breaks: "leaves a pod's container as it was when its image or environment changes",
    tests: "packages/server/src/operations/pods",
    patches: [
      {
        file: "operations/pods/save-pod.ts",
        find: "if (isChanged || isAnew || settings.workersMax === 0)",
        replace: "if (isAnew || settings.workersMax === 0)",
      },
    ],
  },
  {
    name: "clears-volumes-in-use",
    breaks: "removes a deleted pod's volume while its container still runs",
    tests: "packages/server/src/operations/pods",
    patches: [
      {
        file: "loops/pods/clear-pod-volumes.ts",
        find: "!registry.pod(podId) && !isInUse(registry, podId)",
        replace: "!registry.pod(podId)",
      },
    ],
  },
  {
    name: "forgets-due-pods",
    breaks: "does not stop pods at the time that their user has set",
    tests: "packages/server/src/operations/pods",
    patches: [
      {
        file: "loops/pods/end-due-pods.ts",
        find: 'pod.desiredStatus === "RUNNING" ? pod.stopAt : undefined',
        replace: 'pod.desiredStatus === "EXITED" ? pod.stopAt : undefined',
      },
    ],
  },
  {
    name: "bills-paused-time",
    breaks: "counts the time for which a worker was paused",
    tests: "packages/server/src/domain/usage",
    patches: [
      {
        file: "domain/usage/meter.ts",
        find: "return Math.max(0, until - startedAt - pausedMs);",
        replace: "return Math.max(0, until - startedAt);",
      },
    ],
  },
  {
    name: "loses-the-rest-of-an-hour",
    breaks: "loses what rounding leaves of an amount that is spread over hours",
    tests: "packages/server/src/domain/usage",
    patches: [
      {
        file: "domain/usage/meter.ts",
        find: "const part = isLast ? left : Math.round(",
        replace: "const part = Math.floor(",
      },
    ],
  },
  {
    name: "starts-beyond-spend-limits",
    breaks: "starts workers whose user has reached its spending limit",
    tests: "packages/server/src/domain/usage",
    patches: [
      {
        file: "domain/usage/barrier.ts",
        find: "running.cost + more.cost <= spendLimit",
        replace: "running.cost <= spendLimit",
      },
    ],
  },
  {
    name: "ignores-other-endpoints",
    breaks: "counts only an endpoint's own workers against its user's quotas",
    tests: "packages/server/src/loops",
    patches: [
      {
        file: "operations/usage/quotas.ts",
        find: "if (other?.ownerNo !== endpoint.ownerNo) continue;",
        replace: "if (other?.no !== endpoint.no) continue;",
      },
    ],
  },
  {
    name: "ignores-quotas",
    breaks: "lets users make more than their quotas allow",
    tests: "packages/server/src/edges",
    patches: [
      {
        file: "operations/usage/quotas.ts",
        find: "if (most === undefined || more <= 0 || has + more <= most) return;",
        replace: "if (most === undefined || more <= 0 || has <= most) return;",
      },
    ],
  },
];
