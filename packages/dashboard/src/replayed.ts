/** The settings that a what-if replays with other values. */
export const replayed = ["workersMin", "workersMax", "scalerValue", "idleTimeout"] as const;
