// Turns a text into a part of an address: "Grüße, Welt!" becomes "gruesse-welt".
const letters = { ä: "ae", ö: "oe", ü: "ue", ß: "ss", æ: "ae", ø: "oe" };

export default function slug({ text }) {
  if (typeof text !== "string") throw new Error("input.text is not a string");
  const plain = text
    .toLowerCase()
    .replace(/[äöüßæø]/g, (letter) => letters[letter])
    .normalize("NFD")
    .replace(/\p{M}/gu, "");
  return { slug: plain.replace(/[^a-z0-9]+/g, "-").replace(/^-|-$/g, "") };
}
