import tab from "@bomb.sh/tab/commander";
import type { Command } from "commander";

/**
 * Adds `completion`, which prints a shell's script, and `complete`, which that script asks for the words that may follow.
 * `names`: what stands for an endpoint.
 */
export function addCompletion(program: Command, names: readonly string[]): void {
  const completion = tab(program, { completionCommandName: "completion" });
  const printing = program.commands.find((each) => each.name() === "completion");
  printing?.hook("preAction", (_, { args: [shell] }) => {
    if (shell === "bash") process.stdout.write(wordsInBash);
  });
  for (const [name, command] of completion.commands) {
    const takesEndpoint = command.arguments.has("endpoint") && name !== "endpoint create";
    if (!takesEndpoint) continue;
    const rest = [...command.arguments.values()].filter((argument) => argument.name !== "endpoint");
    command.arguments.clear(); // they are told apart by their order
    command.argument("endpoint", (complete) => {
      for (const each of names) complete(each, "");
    });
    for (const argument of rest) command.argument(argument.name, argument.handler, argument.variadic);
  }
}

/** What bash's own package of completions has, for systems without it. */
const wordsInBash = `if ! declare -F _get_comp_words_by_ref >/dev/null; then
    _get_comp_words_by_ref() {
        cur=\${COMP_WORDS[COMP_CWORD]}
        prev=\${COMP_WORDS[COMP_CWORD - 1]}
        words=("\${COMP_WORDS[@]}")
        cword=$COMP_CWORD
    }
fi

`;
