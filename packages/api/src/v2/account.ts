import Type, { type Static } from "typebox";

/** The SSH keys of a user, whole: a key that is not sent is removed. */
export const SshKeys = Type.Object({
  keys: Type.Array(
    Type.String({
      maxLength: 10_000,
      pattern: "^(ssh-|ecdsa-|sk-)[a-z0-9@.-]+ [A-Za-z0-9+/=]+( [^\\u0000-\\u001f\\u007f-\\u009f]*)?$",
      title: "an SSH public key, such as ssh-ed25519 AAAA… name",
    }),
    { maxItems: 100 },
  ),
});
export type SshKeys = Static<typeof SshKeys>;
