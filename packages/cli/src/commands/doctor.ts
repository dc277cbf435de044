import type { Command } from "commander";
import { asCalled, called } from "../called.js";
import { examples } from "../examples.js";
import { exits } from "../exit.js";
import { jsonNote } from "../json-note.js";
import { inLines } from "../output/plain.js";
import type { Tools } from "../tools.js";

/** Before the lines of a finding after its first. */
const before = " ".repeat(14);

/** The command that says what is missing on this machine. */
export function doctorCommand(program: Command, tools: Tools): void {
  program
    .command("doctor")
    .description("Check what Millrace and its workers need here, and say how to mend what is missing.")
    .addHelpText(
      "after",
      jsonNote("the findings", '{ what: string, is: "fine" | "missing" | "wrong", words: string, mend?: string }[]'),
    )
    .addHelpText("after", "\nEnds with 1 if something is wrong; what is only missing may not be needed.")
    .addHelpText("after", examples("millrace doctor"))
    .action(async (_: object, command: Command) => {
      const terminal = tools.terminal(command);
      const { examine } = await import("../doctor/doctor.js"); // other commands need not wait for it
      const findings = await examine(tools.env, tools.folder, command.optsWithGlobals<{ context?: string }>().context);
      const marks = { fine: ["green", "✓"], missing: ["yellow", "!"], wrong: ["red", "✗"] } as const;
      if (terminal.isJson) terminal.result(findings, "");
      else
        for (const { what, is, words, mend } of findings) {
          const [style, mark] = marks[is];
          const width = tools.streams.out.isTTY === true ? terminal.columns - before.length : Number.POSITIVE_INFINITY;
          const said = inLines(words.split(" "), width).join(`\n${before}`);
          terminal.print(`  ${terminal.styled(style, mark)} ${what.padEnd(9)} ${said}`);
          if (mend !== undefined) terminal.print(`${before}${asCalled(mend, called(tools.env, tools.folder))}`);
        }
      tools.end(findings.some(({ is }) => is === "wrong") ? exits.failed : exits.done);
    });
}
