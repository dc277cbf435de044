import type { AuditEntry } from "../../domain/access/audit.js";
import type { ApiKey } from "../../domain/access/key.js";
import { limits } from "../../limits/index.js";
import type { AuditQuery } from "../../store/index.js";
import { turns } from "../../turns.js";
import type { Needs } from "../needs.js";
import { iso } from "../show-resources.js";
import { userFor } from "./save-key.js";
import { seesMore } from "./visible.js";

type Asked = Omit<AuditQuery, "userNo" | "limit"> & {
  readonly limit?: number | undefined;
};

/** A page of the changes that a caller may see. */
interface SeenPage {
  /** Newest first. */
  readonly entries: AuditEntry[];
  /** Where the next page begins; undefined at the end. */
  readonly lookedTo: number | undefined;
}

/**
 * A page of the changes that a caller may see: an admin sees all, a member those of its own keys. It ends when it is
 * full, or when many changes were looked at: it may then be short, or empty, and others come after it.
 */
export async function readAudit(
  needs: Needs<"registry" | "audit">,
  caller: ApiKey,
  { userId, limit = limits.auditPageDefault, ...query }: Asked,
): Promise<SeenPage> {
  seesMore(caller, "the audit log");
  const whose = whoseChanges(needs, caller, userId);
  const found: AuditEntry[] = [];
  let beforeNo = query.beforeNo;
  for (let reads = 0; reads < limits.auditReadsMax; reads++) {
    if (turns.isOver) await turns.take([caller.ownerNo, "audit"]);
    const page = await needs.audit.list({ ...query, ...whose, beforeNo, limit: limit + 1 - found.length });
    found.push(...page.entries);
    beforeNo = page.lookedTo;
    if (found.length > limit) return { entries: found.slice(0, limit), lookedTo: found[limit - 1]?.no };
    if (beforeNo === undefined) break;
  }
  return { entries: found, lookedTo: beforeNo };
}

/** Whose changes the caller may read. An admin may name a deleted user: the changes are kept longer than the user. */
function whoseChanges(
  { registry }: Needs<"registry">,
  caller: ApiKey,
  userId: string | undefined,
): Pick<AuditQuery, "userNo" | "userId"> {
  if (!caller.isAdmin) {
    const { no } = userId === undefined ? { no: caller.ownerNo } : userFor({ registry }, caller, userId);
    return { userNo: no };
  }
  const user = registry.users().find(({ id }) => id === userId);
  return user ? { userNo: user.no } : { userId };
}

/**
 * An entry as a caller sees it. An admin sees that another user has changed a resource, but not what is in it; users and
 * keys are an admin's own business.
 */
export function showEntry(caller: ApiKey, { no, userNo, at, before, after, ...entry }: AuditEntry) {
  const isShown = userNo === caller.ownerNo || /^(user|key)\./.test(entry.action);
  return { at: iso(at), ...entry, ...(isShown && before ? { before } : {}), ...(isShown && after ? { after } : {}) };
}
