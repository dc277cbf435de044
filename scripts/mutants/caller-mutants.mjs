/** Mutants of what callers may see and hold: keys, requests and secrets. */
export const callerMutants = [
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
        find: "call.end();",
        replace: "void call;",
      },
    ],
  },
  {
    name: "lets-narrowed-calls-live",
    breaks: "leaves requests and streams open that their key may not make any more",
    tests: "packages/server/src/edges/rest-v1/access.test.ts",
    patches: [
      {
        file: "lines/held-calls.ts",
        find: "scope !== undefined && call.mayStay(scope)",
        replace: "scope !== undefined",
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
