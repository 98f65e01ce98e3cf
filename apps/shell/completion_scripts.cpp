#include "apps/shell/completion_scripts.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace troupe::apps {
namespace {

constexpr std::string_view kBash = R"(# Completion of troupe for bash 4.3 or later: source <(troupe completion bash)
_troupe() {
  # bash breaks words at = and :, which stand within words of troupe's: words that no blank divides are one.
  local words=() word rest=$COMP_LINE i text help
  for ((i = 0; i <= COMP_CWORD; i++)); do
    word=${COMP_WORDS[i]}
    if ((i == 0)) || [[ $rest == [[:space:]]* ]]; then words+=("$word"); else words[${#words[@]} - 1]+=$word; fi
    rest=${rest#"${rest%%[![:space:]]*}"}
    rest=${rest#"$word"}
  done
  local current=${words[${#words[@]} - 1]} breaks=${COMP_WORDBREAKS//[^=:]/} head=
  [[ -n $breaks ]] && head=${current%"${current##*[$breaks]}"}  # bash replaces only what follows the last break
  COMPREPLY=()
  while IFS=$'\t' read -r text help; do
    case $text in
      :files | :directories)
        local action=file
        [[ $text == :directories ]] && action=directory
        while IFS= read -r word; do COMPREPLY+=("$word"); done < <(compgen -A "$action" -- "${current#"$head"}")
        compopt -o filenames 2>/dev/null
        ;;
      *) COMPREPLY+=("${text#"$head"}") ;;
    esac
  done < <("${words[0]/#\~/$HOME}" completion bash -- "${words[@]:1}" 2>/dev/null)
  [[ ${#COMPREPLY[@]} == 1 && ${COMPREPLY[0]} == *= ]] && compopt -o nospace 2>/dev/null
  return 0
}
complete -F _troupe troupe
)";

constexpr std::string_view kZsh = R"(#compdef troupe
# Completion of troupe for zsh: source <(troupe completion zsh), or a file _troupe in a folder of $fpath
_troupe() {
  local line text entry paths=
  local -a closed open
  for line in "${(@f)$("${(Q)words[1]/#\~/$HOME}" completion zsh -- "${(@Q)words[2,CURRENT]}" 2>/dev/null)}"; do
    text=${line%%$'\t'*}
    case $text in
      '') ;;
      :files | :directories) paths=${text#:} ;;
      *)
        entry=${text//:/\\:}
        [[ $line == *$'\t'?* ]] && entry+=:${line#*$'\t'}
        if [[ $text == *= ]]; then open+=("$entry"); else closed+=("$entry"); fi
        ;;
    esac
  done
  local found=1
  (($#closed)) && _describe -V troupe closed && found=0
  (($#open)) && _describe -V troupe open -S '' && found=0
  if [[ -n $paths ]]; then
    [[ ${words[CURRENT]} == --*=* ]] && compset -P '*='
    if [[ $paths == directories ]]; then _files -/ && found=0; else _files && found=0; fi
  fi
  return found
}
if [[ ${funcstack[1]} == _troupe ]]; then _troupe "$@"; else compdef _troupe troupe; fi
)";

constexpr std::string_view kFish = R"(# Completion of troupe for fish: troupe completion fish | source
function __troupe_complete
    set -l words (commandline -opc)
    set -l current (commandline -ct)
    set -l head (string match -r -- '^--[^=]+=' $current)
    set -l tail (string replace -r -- '^--[^=]+=' '' $current)
    for line in ($words[1] completion fish -- $words[2..-1] "$current" 2>/dev/null)
        switch $line
            case ':files'
                for path in (__fish_complete_path "$tail")
                    echo -- "$head"$path
                end
            case ':directories'
                for path in (__fish_complete_directories "$tail" '')
                    echo -- "$head"$path
                end
            case '*'
                echo -- $line
        end
    end
end
complete -c troupe -f -a '(__troupe_complete)'
)";

std::string one_line_of_help(std::string help) {
  std::ranges::replace_if(
      help, [](unsigned char c) { return c < ' '; }, ' ');
  return help;
}

}  // namespace

const std::vector<std::string>& completion_shells() {
  static const std::vector<std::string> all{"bash", "fish", "zsh"};
  return all;
}

std::string_view completion_script(std::string_view shell) {
  if (shell == "bash") return kBash;
  return shell == "zsh" ? kZsh : kFish;
}

std::string candidate_lines(const ValueCandidates& candidates) {
  std::string text;
  for (const auto& [word, help] : candidates.words)
    if (word.find('\n') == std::string::npos)
      text += help.empty() ? word + "\n" : fmt::format("{}\t{}\n", word, one_line_of_help(help));
  if (candidates.paths == Paths::files) text += ":files\n";
  if (candidates.paths == Paths::directories) text += ":directories\n";
  return text;
}

}  // namespace troupe::apps
