import { invalid } from "../../errors.js";
import { limits } from "../../limits/index.js";
import { auditing } from "../../store/audit.js";
import type { Needs } from "../needs.js";
import { type Caller, changeAs } from "./change-as.js";

const keyLine = /^(ssh-|ecdsa-|sk-)[a-z0-9@.-]+ [A-Za-z0-9+/=]+( [^\p{Cc}]*)?$/u;

/** The SSH keys of a text with one a line. */
export const sshKeysOf = (text: string): string[] =>
  text
    .split("\n")
    .map((line) => line.trim())
    .filter(Boolean);

/** Saves the SSH keys of the caller's user, one a line, which pods accept. */
export function savePubKey(needs: Needs<"registry" | "clock">, asking: Caller, text: string): Promise<string[]> {
  const keys = sshKeysOf(text);
  if (text.length > limits.sshKeysCharsMax)
    throw invalid(`The SSH keys are longer than ${limits.sshKeysCharsMax} characters together.`);
  const wrong = keys.find((key) => !keyLine.test(key));
  if (wrong !== undefined)
    throw invalid(`'${wrong.slice(0, 40)}' is not an SSH public key, such as "ssh-ed25519 AAAA… name".`);
  return changeAs(needs, asking, async (caller) => {
    const user = needs.registry.user(caller.ownerNo);
    if (!user) throw invalid("This key's user was deleted.");
    const pubKey = keys.join("\n");
    if (pubKey === user.pubKey) return keys;
    auditing.note({ action: "user.update", resource: user.id, after: { sshKeys: keys.length } });
    await needs.registry.saveUser({ ...user, pubKey });
    return keys;
  });
}
