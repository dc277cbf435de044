// texts that several operations share; `descriptions`, below, gives each operation its own
const endpointCreation = `Makes version 1 of the endpoint. Workers start when jobs come, and at once for \`workersMin\`.`;
const endpointChange = `A change of what a worker is made of (image, command, env, disk, ports, volumes, GPUs or CPUs, registry credentials)
makes a new version: idle workers are replaced at once, busy ones after their last job. Names, scaling and timeouts apply at once. Any save ends
the pause after failed starts.`;
const endpointDeletion = "Its workers stop, and its unfinished jobs are cancelled.";
const endpointList =
  "All endpoints of the key's user; for a key of chosen endpoints, only these ones. Pods are not among them.";
const templateCreation = `The image is a container image, or, for the first admin, a directory of this machine with a handler in it. Values of
\`env\` may refer to secrets: \`{{ RUNPOD_SECRET_name }}\`.`;
const templateChange = `Endpoints that use the template get a new version if what a worker is made of has changed. Pods keep the copy that they
were made from.`;
const templateDeletion = "Refused while an endpoint uses it. Pods made from it keep their copy.";
const templateReading =
  "Only templates of the key's user. A key of chosen endpoints sees those of its endpoints, without the values of `env`.";
const volumeCreation =
  "A directory that survives workers and pods, and that several may mount at a time. Its size is in GB.";
const volumeChange = "A volume can grow, not shrink. A larger size applies at once.";
const volumeDeletion =
  "Refused while an endpoint, a version that may still run, or a pod uses it. Its files cannot be brought back.";
const volumeReading = "Only volumes of the key's user.";
const registryCreation =
  "User name and password are stored sealed, and never returned. Templates name the credentials by their id.";
const registryReading = "Id and name only: the user name and the password are never returned.";
const registryDeletion = "Refused while a template, or a version of an endpoint that may still run, uses it.";
const userChange = `For admins; a member may change nothing of itself here. The first admin stays an admin. Terms (spending limit, discount,
weight, quotas): those that are sent change, and null takes one away. What runs is never stopped by them.`;
const podCreation = `A pod is a container that stays until it is stopped or deleted. One that finds no place waits, and \`statusDetail\` says for
what. A template is copied into it.`;
const podChange =
  "A running pod whose container changes is stopped and started anew with its volume, which can grow, not shrink.";
const podDeletion = "Its container ends and its own volume is removed. Refused while it is locked.";
const podReading = "`desiredStatus` is what you want of it, `status` what it does, and `statusDetail` why.";
const bill = `Of the key's user, deleted resources included. Amounts are in the currency of the prices, 0 without prices; times are counted
either way. Buckets without usage have no record; a bill has 2,000 buckets and 20,000 records at most.`;
const submission = `The answer comes once the job is on stable storage. With an \`Idempotency-Key\` the same job is returned for 24 hours,
instead of a second one.`;
const jobReading = `The result is kept for 30 minutes after the job's end if it was sent to \`/run\`, and for a minute, or \`wait\`, if it was sent
to \`/runsync\`; afterwards 404. While a job waits, \`waitReason\` and \`waitDetail\` say why.`;
const jobWaiting = "Answers when the job is final or when `wait` (milliseconds) is over, with its status then.";
const streaming = `Each chunk is handed out once to pollers, oldest first. As server-sent events every chunk has an id: send it back as
\`Last-Event-ID\` to go on after it. \`done\` with the job's status is the last event, or \`gone\` if the job is deleted.`;
const workerLog =
  "Kept while the worker lives and for a day after its end, on the host that ran it; 409 while that host's server does not answer. Secrets are masked.";

/** What an operation's summary leaves open, by its operationId: who may call it, what it changes, when it is refused. */
export const descriptions: Readonly<Record<string, string>> = {
  CreateEndpoint: `${endpointCreation} Its template is one of your own, or another user's public one.`,
  ListEndpoints: endpointList,
  GetEndpoint:
    "`includeTemplate`, `includeWorkers` and `includeHealth` add its template, its workers, and how many jobs and workers it has.",
  UpdateEndpoint: endpointChange,
  UpdateEndpointByPost: endpointChange,
  DeleteEndpoint: `Only once \`workersMin\` and \`workersMax\` are 0. ${endpointDeletion}`,
  GetJobStory:
    "When it was submitted, taken and ended, how often it was started, and each retry or loss with its reason.",
  GetJobInput: "Unchanged, and as long as the job is kept. A key that may read the endpoint may read it.",
  StopWorker:
    "It takes no more jobs, and stops when its last one is over, or at once (`now=true`). The scaler starts another one if jobs wait or `workersMin` asks for it.",
  PauseWorker:
    "Only of queue endpoints with FlashBoot. The scaler resumes it for the next job, and at once if `workersMin` asks for it.",
  GetEndpointTimings:
    "Of the newest 2,000 jobs that are still kept, those that a worker has taken. A retry counts from the retry.",
  ReplayEndpointScaling: `The newest 1,000 jobs that are still kept, or fewer with thousands of workers, come again at the same times and run as long. Every worker starts as fast as the
endpoint's workers usually do; none fails, and FlashBoot is left out. Nothing is changed.`,
  ListHosts:
    "A GPU's endpoint and worker are named only if the key may see them. Keys of chosen endpoints do not see hosts.",
  FollowEvents: `Server-sent events. \`changed\` names endpoints, and what has changed of them since the event before: \`jobs\`, \`workers\` or
\`endpoint\`. \`missed\` says that too much has changed, or that you read too slowly: look at everything again. Only endpoints that the key may see are named.`,
  GetEndpointScaling: "Each decision has its time, what was wanted and what there was, and the reason in words.",
  ListEndpointWorkers:
    "Live workers; with `ended=true` also those that ended in the last 24 hours, each with the cause of its end.",
  GetEndpointColdStarts:
    "p50, p90 and p99 of the steps from request to first output, over 500 workers of the last day at most.",
  ListEndpointReleases:
    "The last 50. `state` says which one serves, and `why` what a version waits for or what failed.",
  RollBackEndpoint: `Makes a new version with the earlier one's image and environment, even if the template has changed since. Scaling, name
and timeouts stay. Refused if the version's template, volume or credentials are deleted.`,
  RestartEndpoint: `Makes a new version of the same content: for a handler whose files have changed, or an image whose tag has moved. Idle workers
are replaced at once, busy ones after their last job, or at once too (\`now=true\`); jobs that wait stay in the queue.`,
  GetEndpointLogs: `As text or as JSON lines, or as server-sent events that go on (\`follow=true\`). One request reads at most 64 MB of logs and
returns at most 16 MB; what was left out is said.`,
  GetWorker: "Its state, since when and why; each step of its start with its time; and how it ended.",
  GetWorkerLogs: workerLog,
  CreateTemplate: templateCreation,
  ListTemplates: "Those of the key's user; for a key of chosen endpoints, only those of these endpoints.",
  GetTemplate: templateReading,
  UpdateTemplate: templateChange,
  UpdateTemplateByPost: templateChange,
  DeleteTemplate: templateDeletion,
  CreateNetworkVolume: volumeCreation,
  ListNetworkVolumes: volumeReading,
  GetNetworkVolume: volumeReading,
  UpdateNetworkVolume: volumeChange,
  UpdateNetworkVolumeByPost: volumeChange,
  DeleteNetworkVolume: `${volumeDeletion} An unknown id is 400.`,
  CreateContainerRegistryAuth: registryCreation,
  ListContainerRegistryAuths: registryReading,
  GetContainerRegistryAuth: registryReading,
  DeleteContainerRegistryAuth: registryDeletion,
  CreatePod: podCreation,
  ListPods: "Every filter must hold. Deleted pods are not listed.",
  GetPod: podReading,
  UpdatePod: podChange,
  UpdatePodByPut: podChange,
  UpdatePodByPost: podChange,
  DeletePod: podDeletion,
  StartPod:
    "Also ends the pause after failed starts. A pod with a volume of its own starts on the host that has it, or waits for that host.",
  StopPod: "SIGTERM, then SIGKILL after `MILLRACE_STOP_GRACE`. Refused while the pod is locked.",
  RestartPod:
    "Its volume is kept; everything else in the container is new. Refused while the pod is stopped or locked.",
  ResetPod: "Its volume is kept; everything else in the container is new. Refused while the pod is locked.",
  GetContainerLogs: `The last 1,000 lines at one go, for clients that ask a worker or a pod by its id. Each line begins with its time; \`system\`
has the lines of this server itself.`,
  GetPodLogs: `As text or as JSON lines, or as server-sent events that go on (\`follow=true\`). ${workerLog}`,
  PodBilling: bill,
  EndpointBilling: bill,
  NetworkVolumeBilling: bill,
  GetPrices: "In a currency of the server's choice. Without prices all amounts are 0.",
  SetPrices: "A price that is left out becomes 0. What has been used keeps the prices of its time.",
  CreateUser: "For admins. The webhook signing secret is shown this once. A name belongs to one user only.",
  ListUsers: "A member sees itself.",
  GetUser: "For admins; a member sees itself.",
  UpdateUser: userChange,
  DeleteUser: `For admins. A user who owns something is not deleted without \`transferTo\` or \`deleteResources=true\`; the refusal lists what it
owns. A transfer beyond the new owner's quotas is refused with the numbers. Its keys end either way. Repeat a request that could not delete everything yet: it continues.`,
  RotateWebhookSecret: "The new secret is shown this once. For 24 hours deliveries carry both signatures.",
  CreateApiKey:
    "The key's text is shown this once: only its hash is stored. An admin may make keys for other users (`userId`).",
  ListApiKeys: "With first characters, scope, expiry and last use. An admin may ask for another user's (`userId`).",
  GetApiKey: "First characters, scope, expiry and last use. With the id `self`, of the key that asks: every key may.",
  UpdateApiKey:
    "Takes effect within 5 s on every server, also on open waits and streams. The bootstrap key cannot be limited.",
  DeleteApiKey:
    "Its open waits and streams end within 5 s on every server; its jobs go on. The bootstrap key can only be rotated.",
  RotateApiKey:
    "The new text is shown this once. The old one works for `overlapSeconds` (a day; 0 ends it at once), but cannot change users or keys.",
  CreateSecret:
    "Environments refer to it as `{{ RUNPOD_SECRET_name }}`. The value is stored sealed, never returned, and masked in logs.",
  ListSecrets: "Names and descriptions only.",
  GetSecret: "Name and description only.",
  UpdateSecret:
    "Workers that have the old value keep it until they end: restart the endpoint to replace them. A secret keeps its name, because environments refer to it.",
  DeleteSecret:
    "Workers that have it keep it until they end; new ones that need it are not started, and the job says so.",
  ListChanges: `Who changed what, with which key, from where and when; the fields that differ, before and after, without secrets. A page may be
short although there is more: go on while there is a \`nextCursor\`. Kept for 90 days (\`MILLRACE_AUDIT_DAYS\`).`,
  GetWebhookSecret: "Deliveries are signed with it by the Standard Webhooks scheme.",
  ListWebhookDeliveries:
    "Those of the last day, also of deleted endpoints. `before` takes the last id of a page and continues it.",
  GetWebhookDelivery:
    "Each attempt has its time, status or error, duration, and the first KB of the receiver's answer.",
  RedeliverWebhook:
    "Only one that has ended, while the job's result is kept. All its attempts together are at most 20.",
  ListWebhookReceivers:
    "With how the last attempts went. One whose last five attempts failed is `failing`. None is paused by itself.",
  GetWebhookReceiver: "Its state, how its last attempts went, and how many deliveries are held back for it.",
  PauseWebhookReceiver:
    "Held deliveries are kept, 10,000 at most, also when their jobs are gone; further ones fail, and say why.",
  ResumeWebhookReceiver: "All that was held is sent, also of jobs that `/status` no longer knows.",

  run: submission,
  runSync: `Waits for \`wait\` milliseconds (90,000 by default); if the job is not final by then, the reply has its status, and the job goes on.
${submission}`,
  getStatus: jobReading,
  getStatusByPost: jobReading,
  awaitStatus: jobWaiting,
  awaitStatusByPost: jobWaiting,
  stream: streaming,
  streamByPost: streaming,
  getMetrics:
    "For clients that look for a worker's log while they wait: the health, and the ids of the workers that have it.",
  getHealth: "Costs the same with a million jobs in the queue.",
  listJobs: "A page holds 100 jobs and 8 MB of outputs at most.",
  cancelJob: "A running job's worker is told to stop it. Refused if the job has ended.",
  retryJob:
    "The same id and input, at the back of the queue. Output, error, progress and chunks of the run before are removed.",
  purgeQueue: "Those that wait when the request comes. Running jobs go on.",

  createEndpoint: `${endpointCreation} A template is made from its container, and deleted with it.`,
  listEndpoints: endpointList,
  getEndpoint: "Only endpoints that the key may see; any other id is 404.",
  updateEndpoint: endpointChange,
  deleteEndpoint:
    "Sets its workers to 0 first. Pods, templates and volumes are kept, a template that was sent with it is not.",
  createTemplate: templateCreation,
  listTemplates: "Those of the key's user. Public ones of others are in the catalogue.",
  getTemplate: templateReading,
  updateTemplate: templateChange,
  deleteTemplate: templateDeletion,
  createNetworkVolume: volumeCreation,
  listNetworkVolumes: volumeReading,
  getNetworkVolume: volumeReading,
  updateNetworkVolume: volumeChange,
  deleteNetworkVolume: volumeDeletion,
  createRegistry: registryCreation,
  listRegistries: registryReading,
  getRegistry: registryReading,
  deleteRegistry: registryDeletion,
  getSshKeys: "Those of the key's user.",
  updateSshKeys: "Pods that start from now on get them as `PUBLIC_KEY`; running ones keep what they have.",
  createPod: podCreation,
  listPods: podReading,
  getPod: podReading,
  updatePod: podChange,
  deletePod: podDeletion,
  podAction: "Refused while the pod is locked, except to start it. Its own volume is kept by all but `terminate`.",
  listEndpointWorkers: "Live ones, with a summary of their states.",
  listEndpointReleases: "The last 50.",
  listGpuTypes:
    "Every type that an endpoint may ask for, also types that no host here has. `include=AVAILABILITY` says whether any are free, and where.",
  getGpuType:
    "Its memory, its price, and how many of it one host here has. `include=AVAILABILITY` says whether any are free, and where.",
  listCpuTypes: "Each gives a virtual processor so many GB of memory.",
  getCpuType: "GB of memory for each virtual processor, and the most processors that a host here has.",
  listDataCenters:
    "Those of the public interface, and those that hosts here say they are in. A host that says no place counts for each of them.",
  getDataCenter: "`include` adds the GPUs and CPUs that are free there.",
  listPublicTemplates: "Public templates of all users, without the values of their `env`.",
  getPublicTemplate: "Without the values of its `env`.",
  listPodBilling: bill,
  listServerlessBilling: bill,
  listNetworkVolumeBilling: bill,
  listNetworkVolumesBilling: bill,
  listEndpointBilling: "Always empty. What your own endpoints cost is under `/v2/billing/serverless`.",
  listClusterBilling: "Always empty.",
  listBilling: bill,
  getWorkerLogs: `Each line is an event with an id: send it back as \`Last-Event-ID\` to go on after it. ${workerLog}`,
  getPodLogs: `Each line is an event with an id: send it back as \`Last-Event-ID\` to go on after it. ${workerLog}`,
};
