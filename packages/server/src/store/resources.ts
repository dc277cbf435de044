import type { RegistryAuth } from "../domain/endpoints/registry-auth.js";
import type { Template, TemplateSettings } from "../domain/endpoints/template.js";
import type { Volume } from "../domain/endpoints/volume.js";

export interface TemplateStore {
  create(template: { id: string; ownerNo: number; settings: TemplateSettings }): Promise<Template>;
  save(no: number, settings: TemplateSettings): Promise<void>;
  remove(no: number): Promise<void>;
  all(): Promise<Template[]>;
  /** The existing rows with these numbers. */
  some(nos: readonly number[]): Promise<Template[]>;
}

export interface VolumeStore {
  create(volume: Omit<Volume, "no">): Promise<Volume>;
  save(volume: Volume): Promise<void>;
  /** Deletes a volume, and keeps what it has used until that is banked. */
  remove(volume: Volume, used: { readonly gbMs: number; readonly endedAt: number }): Promise<void>;
  all(): Promise<Volume[]>;
  /** The existing rows with these numbers. */
  some(nos: readonly number[]): Promise<Volume[]>;
  existing(ids: readonly string[]): Promise<string[]>;
}

export interface RegistryAuthStore {
  create(auth: Omit<RegistryAuth, "no">): Promise<RegistryAuth>;
  save(auth: RegistryAuth): Promise<void>;
  remove(no: number): Promise<void>;
  all(): Promise<RegistryAuth[]>;
  /** The existing rows with these numbers. */
  some(nos: readonly number[]): Promise<RegistryAuth[]>;
}
