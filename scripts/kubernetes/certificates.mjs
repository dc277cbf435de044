// The certificates of a cluster for tests, and a kubeconfig for each of its parts.
import { spawnSync } from "node:child_process";
import { mkdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";

/** Makes an authority, and what it signs, in `home/pki`; and `home/NAME.kubeconfig` for each client. */
export function makeCertificates(home, { api, addresses, node }) {
  const pki = join(home, "pki");
  mkdirSync(pki, { recursive: true, mode: 0o700 });
  const openssl = (...args) => {
    const { status, stderr, error } = spawnSync("openssl", args, { cwd: pki, encoding: "utf8" });
    if (status !== 0) throw new Error(`openssl ${args[0]}: ${stderr ?? error}`);
  };
  const key = (name) => openssl("ecparam", "-name", "prime256v1", "-genkey", "-noout", "-out", `${name}.key`);
  const days = ["-days", "3650"];
  const sign = (name, subject, extensions) => {
    key(name);
    writeFileSync(join(pki, `${name}.ext`), `${extensions}\n`);
    openssl("req", "-new", "-key", `${name}.key`, "-subj", subject, "-out", `${name}.csr`);
    const by = ["-CA", "ca.crt", "-CAkey", "ca.key", "-CAcreateserial"];
    openssl("x509", "-req", "-in", `${name}.csr`, ...by, ...days, "-out", `${name}.crt`, "-extfile", `${name}.ext`);
    for (const end of ["ext", "csr"]) rmSync(join(pki, `${name}.${end}`));
  };

  key("ca");
  openssl("req", "-x509", "-new", "-key", "ca.key", "-subj", "/CN=millrace-test", ...days, "-out", "ca.crt");
  key("accounts");
  openssl("ec", "-in", "accounts.key", "-pubout", "-out", "accounts.pub");
  const names = ["localhost", "kubernetes", "kubernetes.default.svc"].map((name) => `DNS:${name}`);
  sign("api", "/CN=kube-apiserver", `subjectAltName=${[...names, ...addresses.map((each) => `IP:${each}`)].join(",")}`);
  sign("node", `/O=system:nodes/CN=system:node:${node}`, `subjectAltName=DNS:${node},IP:${addresses[1]},IP:127.0.0.1`);

  const clients = {
    "api-client": "/O=system:masters/CN=kube-apiserver-kubelet-client",
    admin: "/O=system:masters/CN=admin",
    controllers: "/CN=system:kube-controller-manager",
    scheduler: "/CN=system:kube-scheduler",
    kubelet: `/O=system:nodes/CN=system:node:${node}`,
  };
  for (const [name, subject] of Object.entries(clients)) {
    sign(name, subject, "extendedKeyUsage=clientAuth");
    const user = { "client-certificate": join(pki, `${name}.crt`), "client-key": join(pki, `${name}.key`) };
    writeKubeconfig(home, name, { api, user });
  }
}

/** Writes `home/NAME.kubeconfig` for a client with these credentials; resolves with its path. */
export function writeKubeconfig(home, name, { api, user }) {
  const path = join(home, `${name}.kubeconfig`);
  const cluster = { server: `https://127.0.0.1:${api}`, "certificate-authority": join(home, "pki/ca.crt") };
  const config = {
    apiVersion: "v1",
    kind: "Config",
    clusters: [{ name: "test", cluster }],
    users: [{ name, user }],
    contexts: [{ name: "test", context: { cluster: "test", user: name } }],
    "current-context": "test",
  };
  writeFileSync(path, JSON.stringify(config, null, 2), { mode: 0o600 }); // JSON is YAML
  return path;
}
