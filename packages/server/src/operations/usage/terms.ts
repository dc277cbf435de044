import type { Quotas, Terms } from "../../domain/access/user.js";
import { quotaNames } from "../../domain/access/user.js";
import { nanoPerUnit, shownAmount } from "../../domain/usage/price.js";
import { invalid } from "../../errors.js";
import { limits } from "../../limits/index.js";

/** What an admin sends of a user's terms: absent keeps, null clears. Money is in units of the currency. */
export interface TermsInput {
  readonly serverlessDiscount?: number | null;
  readonly spendLimit?: number | null;
  readonly weight?: number | null;
  readonly quotas?: { readonly [Name in keyof Quotas]?: number | null } | null;
}

/** The terms that result from applying `input` to others. */
export function mergeTerms(base: Terms, { serverlessDiscount, spendLimit, quotas, weight }: TermsInput): Terms {
  const { quotas: before = {}, ...money } = base;
  const merged: Record<string, number | null | undefined> = quotas === null ? {} : { ...before, ...quotas };
  const kept = quotaNames.flatMap((name) => (typeof merged[name] === "number" ? [[name, merged[name]] as const] : []));
  const draft = {
    serverlessDiscount: serverlessDiscount === undefined ? money.serverlessDiscount : serverlessDiscount,
    spendLimit:
      spendLimit === undefined ? money.spendLimit : spendLimit === null ? null : Math.round(spendLimit * nanoPerUnit),
    weight: weight === undefined ? money.weight : weight,
    quotas: kept.length > 0 ? Object.fromEntries(kept) : null,
  };
  return Object.fromEntries(Object.entries(draft).filter(([, value]) => value !== undefined && value !== null));
}

/** A user's terms as callers see them. */
export const showTerms = ({ serverlessDiscount, spendLimit, quotas, weight }: Terms) => ({
  ...(weight === undefined ? {} : { weight }),
  ...(serverlessDiscount === undefined ? {} : { serverlessDiscount }),
  ...(spendLimit === undefined ? {} : { spendLimit: shownAmount(spendLimit) }),
  ...(quotas === undefined ? {} : { quotas }),
});

/** Refuses terms that make no sense. */
export function checkTerms({ serverlessDiscount, spendLimit, quotas, weight }: TermsInput): void {
  if (weight !== undefined && weight !== null && !(weight >= limits.weightMin && weight <= limits.weightMax))
    throw invalid(`'weight' must be a number from ${limits.weightMin} to ${limits.weightMax}.`);
  if (
    serverlessDiscount !== undefined &&
    serverlessDiscount !== null &&
    !(serverlessDiscount >= 0 && serverlessDiscount <= 1)
  )
    throw invalid("'serverlessDiscount' must be the share that is taken off, from 0 to 1.");
  if (spendLimit !== undefined && spendLimit !== null && !(spendLimit >= 0 && spendLimit <= limits.priceMax))
    throw invalid(`'spendLimit' must be an amount an hour from 0 to ${limits.priceMax}.`);
  for (const [name, most] of Object.entries(quotas ?? {}))
    if (most !== null && !(Number.isInteger(most) && most >= 0 && most <= limits.quotaMax))
      throw invalid(`'quotas.${name.slice(0, 80)}' must be a whole number from 0 to ${limits.quotaMax}.`);
}
