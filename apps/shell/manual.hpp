/// Manual pages in roff, for man and mandoc, made from the parsers' tables and the table of options. Thread rule: the main thread.
#pragma once

#include <list>
#include <string>
#include <string_view>
#include <vector>

#include "apps/command_tree.hpp"
#include "core/config/config.hpp"

namespace troupe::apps {

struct ManualPage {
  std::string name;  // "troupe-runs-list"
  int section = 1;   // 1: a command; 5: a file's keys
  std::string text;
};

/// A page for `troupe` and for every subcommand, in the order of the help; then troupe-config(5) and troupe-cluster(5). `all`: from
/// declare_all().
[[nodiscard]] std::vector<ManualPage> manual(const std::list<Parsed>& all);

/// Text as roff shows it unchanged, whatever it has for backslashes, quotes and leading dots; UTF-8 becomes \[uXXXX].
[[nodiscard]] std::string roff_text(std::string_view text);

}  // namespace troupe::apps
