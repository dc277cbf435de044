/** Credentials of a container registry. User name and password are sealed, and never shown. */
export interface RegistryAuth {
  readonly no: number;
  readonly id: string;
  readonly ownerNo: number;
  readonly name: string;
  readonly username: string;
  readonly password: string;
}
