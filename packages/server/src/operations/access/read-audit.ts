import type { AuditEntry } from "../../domain/access/audit.js";
import type { ApiKey } from "../../domain/access/key.js";
import { limits } from "../../limits/index.js";
import type { AuditQuery } from "../../store/index.js";
import type { Needs } from "../needs.js";
import { iso } from "../show-resources.js";
import { userFor } from "./save-key.js";
import { seesMore } from "./visible.js";

type Asked = Omit<AuditQuery, "userNo" | "limit"> & {
  readonly userId?: string | undefined;
  readonly limit?: number | undefined;
};

/** A page of the changes that a caller may see, newest first: an admin sees all, a member those of its own keys. */
export async function readAudit(
  needs: Needs<"registry" | "audit">,
  caller: ApiKey,
  { userId, limit = limits.auditPageDefault, ...query }: Asked,
): Promise<{ entries: AuditEntry[]; more: boolean }> {
  seesMore(caller, "the audit log");
  const whose = userId === undefined ? undefined : userFor(needs, caller, userId).no;
  const userNo = caller.isAdmin ? whose : caller.ownerNo;
  const entries = await needs.audit.list({ ...query, userNo, limit: limit + 1 });
  return { entries: entries.slice(0, limit), more: entries.length > limit };
}

/**
 * An entry as a caller sees it. An admin sees that another user has changed a resource, but not what is in it; users and
 * keys are an admin's own business.
 */
export function showEntry(caller: ApiKey, { no, userNo, at, before, after, ...entry }: AuditEntry) {
  const isShown = userNo === caller.ownerNo || /^(user|key)\./.test(entry.action);
  return { at: iso(at), ...entry, ...(isShown && before ? { before } : {}), ...(isShown && after ? { after } : {}) };
}
