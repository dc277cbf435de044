import type { Command } from "commander";
import { examples } from "../examples.js";

/** The command that prints a shell's script, as the help shows it; `completion.ts` has what it does. */
export function completionHelp(program: Command): void {
  program
    .command("completion")
    .description("Print a script that completes commands, options and endpoints' names in a shell.")
    .argument("<shell>", "bash, zsh or fish")
    .addHelpText(
      "after",
      examples(
        "source <(millrace completion bash)                                     in ~/.bashrc",
        "source <(millrace completion zsh)                                      in ~/.zshrc, after compinit",
        "millrace completion fish > ~/.config/fish/completions/millrace.fish",
      ),
    );
}
