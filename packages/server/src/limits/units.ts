/** Durations are milliseconds, sizes bytes. */
export const second = 1_000;
export const minute = 60 * second;
export const hour = 60 * minute;
export const day = 24 * hour;
export const kib = 1_024;
export const mib = 1_024 * kib;
export const gib = 1_024 * mib;
