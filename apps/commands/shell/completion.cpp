#include <memory>

#include "apps/arguments/checks.hpp"
#include "apps/command.hpp"
#include "apps/output.hpp"
#include "apps/shell/candidates.hpp"
#include "apps/shell/completion_scripts.hpp"

namespace troupe::apps {
namespace {

struct CompletionArguments {
  std::string shell;
  std::vector<std::string> words;
};

core::Result<void> run_completion(const CompletionArguments& arguments) {
  if (arguments.words.empty()) return print(completion_script(arguments.shell));
  CLI::App app(program().summary, program().name);
  const auto all = declare_all(app);
  return print(candidate_lines(candidates_for(all, arguments.words)));
}

Action declare_completion(CLI::App& app) {
  const auto arguments = std::make_shared<CompletionArguments>();
  app.add_option("SHELL", arguments->shell, "the shell")->check(word_of(completion_shells()))->required();
  app.add_option("WORDS", arguments->words,
                 "behind `--`, the words after `troupe` on a command line, the last one unfinished or \"\": print what "
                 "may follow, as the scripts ask");
  return [arguments] { return run_completion(*arguments); };
}

}  // namespace

Command completion() {
  return {.name = "completion",
          .summary = "print the completion script of a shell: commands, flags, keys and values, and the names of runs",
          .examples =
              "  source <(troupe completion bash)                     in this bash; in ~/.bashrc for all\n"
              "  troupe completion zsh > ~/.zfunc/_troupe             a folder of $fpath\n"
              "  troupe completion fish > ~/.config/fish/completions/troupe.fish\n",
          .declare = declare_completion};
}

}  // namespace troupe::apps
