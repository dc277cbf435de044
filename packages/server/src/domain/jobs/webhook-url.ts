/** A webhook's URL as lists show it: whoever may read them need not learn the password for its receiver. */
export function withoutPassword(url: string): string {
  if (!URL.canParse(url)) return url;
  const parsed = new URL(url);
  if (parsed.password === "") return url;
  parsed.password = "";
  return parsed.href;
}
