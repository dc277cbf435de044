/** Credentials of a container registry. Both words are sealed, and shown to nobody. */
export interface RegistryAuth {
  readonly no: number;
  readonly id: string;
  readonly ownerNo: number;
  readonly name: string;
  readonly username: string;
  readonly password: string;
}
