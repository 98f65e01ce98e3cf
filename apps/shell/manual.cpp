#include "apps/shell/manual.hpp"

#include <algorithm>
#include <array>
#include <cctype>

#include <fmt/format.h>

#include "apps/help.hpp"
#include "experiment/settings.hpp"
#include "sim/cluster/cluster_file.hpp"

namespace troupe::apps {
namespace {

struct ExitCode {
  int code;
  std::string_view meaning;
};
/// core::exit_code()
constexpr std::array kExitCodes{
    ExitCode{0, "done"},
    ExitCode{2, "wrong usage"},
    ExitCode{65, "bad data or a damaged file; a replay that compared no hash"},
    ExitCode{69, "your own program failed: an exception, or an end before that of the run"},
    ExitCode{70, "the training diverged, a replay diverged from its recording, or an internal error"},
    ExitCode{71, "memory ran out"},
    ExitCode{74, "a file cannot be read or written: a disk failed or is full, or permissions forbid it"},
    ExitCode{75, "try again: a peer was lost, a deadline passed, or another process trains in the directory"},
    ExitCode{78, "bad configuration, or no configuration or run at the path that was given"},
    ExitCode{130, "interrupted: after a checkpoint, or before training began"}};

std::string page_name(const CLI::App& app) {
  auto name = full_name(app);
  std::ranges::replace(name, ' ', '-');
  return name;
}

std::string upper(std::string text) {
  std::ranges::transform(text, text.begin(), [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  return text;
}

std::string bold(std::string_view text) { return fmt::format("\\fB{}\\fR", roff_text(text)); }

std::string head_of_page(const std::string& name, int section, std::string_view summary) {
  return fmt::format(".TH \"{}\" \"{}\" \"\" \"troupe {}\" \"{}\"\n.SH NAME\n{} \\- {}\n", roff_text(upper(name)),
                     section, TROUPE_VERSION, section == 1 ? "Troupe's commands" : "Troupe's files", roff_text(name),
                     roff_text(summary));
}

/// A term, and what it means.
std::string item(const std::string& term, std::string_view meaning) {
  return fmt::format(".TP\n{}\n{}\n", term, roff_text(meaning));
}

std::string reference(const std::string& name, int section) { return fmt::format("{}({})", bold(name), section); }

std::string see_also(const std::vector<std::string>& references) {
  std::string text = ".SH SEE ALSO\n";
  for (std::size_t i = 0; i < references.size(); ++i)
    text += references[i] + (i + 1 < references.size() ? ",\n" : "\n");
  return text;
}

std::string examples_section(std::string_view examples) {
  std::string text = ".SH EXAMPLES\n.nf\n";
  for (std::size_t begin = 0; begin < examples.size();) {
    const auto end = std::min(examples.find('\n', begin), examples.size());
    auto line = examples.substr(begin, end - begin);
    line.remove_prefix(std::min(line.find_first_not_of(' '), line.size()));
    text += roff_text(line) + "\n";
    begin = end + 1;
  }
  return text + ".fi\n";
}

bool sets_keys(const CLI::App& app) { return app.get_option_no_throw("--set") != nullptr; }

ManualPage page_of(const Parsed& parsed) {
  const auto& command = *parsed.command;
  const auto& app = *parsed.app;
  ManualPage page{page_name(app), 1, {}};
  auto& text = page.text;
  text = head_of_page(page.name, 1, command.summary);
  text += fmt::format(".SH SYNOPSIS\n{}\n", bold(usage_line(command, app)));
  std::string arguments, flags, subcommands;
  for (const auto* option : app.get_options())
    (option->get_positional() ? arguments : flags) += item(bold(option_form(*option)), option_help(app, *option));
  for (const auto& sub : command.subcommands)
    if (!sub.hidden) subcommands += item(reference(page.name + "-" + sub.name, 1), sub.summary);
  if (!arguments.empty()) text += ".SH ARGUMENTS\n" + arguments;
  text += ".SH OPTIONS\n" + flags;
  if (!subcommands.empty()) text += ".SH SUBCOMMANDS\n" + subcommands;
  text += examples_section(command.examples) + ".SH EXIT STATUS\n";
  for (const auto& [code, meaning] : kExitCodes) text += item(fmt::format("{}", code), meaning);
  std::vector<std::string> references;
  if (app.get_parent() != nullptr) references.push_back(reference(page_name(*app.get_parent()), 1));
  if (sets_keys(app) || app.get_parent() == nullptr) references.push_back(reference("troupe-config", 5));
  if (app.get_option_no_throw("--cluster") != nullptr) references.push_back(reference("troupe-cluster", 5));
  text += see_also(references);
  return page;
}

/// The keys of a TOML file.
ManualPage page_of(const std::string& name, std::string_view summary, const core::Schema& schema,
                   const std::string& user, const std::string& flag) {
  ManualPage page{name, 5, head_of_page(name, 5, summary)};
  page.text +=
      fmt::format(".SH DESCRIPTION\nA TOML file with these sections and keys. {} sets a key on the command line.\n",
                  bold(flag + " SECTION.KEY=VALUE"));
  std::string section;
  for (const auto& option : schema.options()) {
    const auto dot = option.key.rfind('.');
    if (const auto its = option.key.substr(0, dot); its != section) {
      section = its;
      page.text += fmt::format(".SH [{}]\n", roff_text(section));
    }
    auto meaning = option.help;
    if (!option.rule.text.empty()) meaning += fmt::format(" [{}]", option.rule.text);
    if (!option.scope.empty()) meaning += fmt::format(" (only with {})", option.scope);
    const bool required = option.rule.allows && !option.rule.allows(option.default_value);
    page.text += item(required ? fmt::format("{} (required)", bold(option.key.substr(dot + 1)))
                               : fmt::format("{} = {}", bold(option.key.substr(dot + 1)),
                                             roff_text(core::to_toml(option.default_value))),
                      meaning);
  }
  page.text += see_also({reference("troupe", 1), reference(user, 1)});
  return page;
}

}  // namespace

std::string roff_text(std::string_view text) {
  std::string roff;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto c = static_cast<unsigned char>(text[i]);
    if (c == '\\') {
      roff += "\\e";
    } else if (c == '-') {
      roff += "\\-";
    } else if (c == '\'') {
      roff += "\\(aq";
    } else if (c == '`') {
      roff += "\\(ga";
    } else if (c == '^') {
      roff += "\\(ha";
    } else if (c == '~') {
      roff += "\\(ti";
    } else if (c == '"') {
      roff += "\\(dq";
    } else if (c == '.' && (i == 0 || text[i - 1] == '\n')) {
      roff += "\\&.";
    } else if (c < 0x80) {
      roff += static_cast<char>(c);
    } else {
      const int more = c >= 0xf0 ? 3 : c >= 0xe0 ? 2 : 1;
      std::uint32_t point = c & (0x3fU >> more);
      for (int k = 0; k < more && i + 1 < text.size(); ++k)
        point = (point << 6U) | (static_cast<unsigned char>(text[++i]) & 0x3fU);
      roff += fmt::format("\\[u{:04X}]", point);
    }
  }
  return roff;
}

std::vector<ManualPage> manual(const std::list<Parsed>& all) {
  std::vector<ManualPage> pages;
  for (const auto& parsed : all)
    if (!parsed.command->hidden) pages.push_back(page_of(parsed));
  pages.push_back(
      page_of("troupe-config", "the configuration of a run", experiment::schema(), "troupe-train", "--set"));
  pages.push_back(
      page_of("troupe-cluster", "the machines of a forecast", sim::cluster_keys(), "troupe-simulate", "--cluster-set"));
  return pages;
}

}  // namespace troupe::apps
