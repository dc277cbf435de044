// Writes deploy/kubernetes/millrace.yaml, the chart's manifests with its defaults; with --print, prints them.
import { spawnSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { main, root, SetUpFailure } from "../set-up.mjs";
import { builtHelm, templateArgs } from "./helm.mjs";

const file = join(root, "deploy/kubernetes/millrace.yaml");
const header = `# Two servers whose workers are pods: the chart in deploy/helm/millrace with its defaults, for those who do not use Helm.
# Written by \`node scripts/kubernetes/manifests.mjs\`; change the image to yours. What is to stay when
# it is deleted is made apart: the namespaces, of which the workers' one holds network volumes, and a Secret.
#   kubectl create namespace millrace
#   kubectl create namespace millrace-workers
#   kubectl create secret generic millrace --namespace millrace --from-literal=MILLRACE_DATABASE_URL=… \\
#     --from-literal=MILLRACE_API_KEY=… --from-literal=MILLRACE_SEAL_KEY=…
#   kubectl apply --filename deploy/kubernetes/millrace.yaml
`;

await main(async () => {
  const helm = await builtHelm();
  const args = templateArgs("--set", "workers.createNamespace=false");
  const { status, stdout, stderr } = spawnSync(helm, args, { encoding: "utf8" });
  if (status !== 0) throw new SetUpFailure("Helm could not render the chart:", stderr);
  // who uses these files has no Helm, and no release
  const lines = stdout
    .split("\n")
    .filter(
      (line) =>
        !/^ *(helm\.sh\/|app\.kubernetes\.io\/managed-by:)|^ {2}annotations:$|# workers may still run/.test(line),
    );
  const text = `${header}${lines.join("\n")}`;
  if (process.argv.includes("--print")) process.stdout.write(text);
  else writeFileSync(file, text);
  return 0;
});
