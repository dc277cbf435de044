import type { Job } from "@millrace/worker";

interface Input {
  name?: string;
}

/** Greets the person in the input. */
export default function hello({ name = "world" }: Input, job: Job) {
  job.log.info(`Greeting ${name}`);
  return { greeting: `Hello, ${name}!` };
}
