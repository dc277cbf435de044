import { limits } from "../../limits/index.js";

/** A map that forgets its oldest entry when it is full, before another one comes. */
export function bounded<K, V>(map: Map<K, V>): Map<K, V> {
  if (map.size >= limits.terminalNamesMax) map.delete(map.keys().next().value as K);
  return map;
}
