import type { Job } from "@millrace/worker";

interface Input {
  name?: string;
}

/** Greets whoever is named. */
export default function hello({ name = "world" }: Input, job: Job) {
  job.log.info(`Greeting ${name}`);
  return { greeting: `Hello, ${name}!` };
}
