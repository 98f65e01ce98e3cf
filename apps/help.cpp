#include "apps/help.hpp"

#include <algorithm>
#include <array>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "core/text/layout.hpp"
#include "core/text/nearest.hpp"
#include "nn/layers_config.hpp"

namespace troupe::apps {
namespace {

using core::list_row;
using core::text_width;
using core::wrapped;

constexpr std::size_t kWidestLeft = 26;  // a longer flag stands on a line of its own

struct Row {
  std::string left;
  std::string right;
};

std::string word_of_type(const std::string& type) {
  if (type == "INT" || type == "UINT") return "N";
  if (type == "FLOAT") return "X";
  return type;
}

/// Names of the options in `chosen`, in the order of the command's.
std::string names_in(const CLI::App& app, const std::set<CLI::Option*>& chosen) {
  std::vector<std::string> names;
  for (const auto* option : app.get_options())
    if (std::ranges::find(chosen, option) != chosen.end())
      names.push_back(option->get_positional() ? option->get_name(true) : option->get_name());
  return fmt::format("{}", fmt::join(names, ", "));
}

std::string rows_text(std::string_view title, const std::vector<Row>& rows, std::size_t columns) {
  if (rows.empty()) return {};
  std::size_t at = 0;
  for (const auto& row : rows)
    if (const auto width = text_width(row.left); width <= kWidestLeft) at = std::max(at, width + 4);
  at = std::max<std::size_t>(at, 8);
  auto text = fmt::format("\n{}:\n", title);
  for (const auto& row : rows) text += list_row(row.left, row.right, at, columns);
  return text;
}

/// A command that is too long goes on in the next line, as a shell reads it; its comment, after two blanks, has a line of its own then.
std::string broken_command(std::string_view line, std::size_t columns) {
  constexpr std::size_t kIndent = 2, kFurther = 6;
  const auto gap = std::min(line.find("  ", kIndent), line.size());
  const auto comment = wrapped(line.substr(gap), columns, kFurther + 2, kFurther + 2);
  std::string text(kIndent, ' ');
  for (const char c : wrapped(line.substr(0, gap), columns - 2, kFurther, kIndent)) {
    if (c == '\n') text += " \\";
    text += c;
  }
  text += '\n';
  return comment.empty() ? text : text + std::string(kFurther, ' ') + "# " + comment + "\n";
}

/// Lines of examples; whole ones where they fit.
std::string examples_of(std::string_view examples, std::size_t columns) {
  constexpr std::array kPrograms{"  troupe ", "  mpirun ", "  srun "};
  std::string text;
  for (std::size_t begin = 0; begin < examples.size();) {
    const auto end = std::min(examples.find('\n', begin), examples.size());
    const auto line = examples.substr(begin, end - begin);
    begin = end + 1;
    if (text_width(line) <= columns)
      text += fmt::format("{}\n", line);
    else if (std::ranges::any_of(kPrograms, [&](const char* start) { return line.starts_with(start); }))
      text += broken_command(line, columns);
    else
      text += fmt::format("  {}\n", wrapped(line, columns, 2, 2));
  }
  return text;
}

bool is_topic(const core::Schema& schema, std::string_view topic) {
  return std::ranges::any_of(schema.options(), [&](const core::Option& option) {
    return option.key == topic || option.key.starts_with(std::string(topic) + ".");
  });
}

std::string overview(const core::Schema& schema, std::size_t columns, std::string_view command, std::string_view flag) {
  std::vector<Row> rows;
  for (const auto& section : schema.sections())
    rows.push_back({fmt::format("[{}]", section), fmt::format("{}", fmt::join(schema.keys_of(section), ", "))});
  const auto intro = fmt::format(
      "`{0} --help SECTION` explains the keys of a section, with their defaults; "
      "`--help SECTION.KEY` is about one key, `--help all` about all. {1} SECTION.KEY=VALUE sets a key.",
      command, flag);
  return rows_text("Keys by section", rows, columns) + "\n" + wrapped(intro, columns, 0, 0) + "\n";
}

}  // namespace

ValueType value_type(const CLI::Option& option) {
  const auto all = option.get_type_name();
  const auto rule = all.find(":[");
  if (rule == std::string::npos) return {word_of_type(all), ""};
  return {word_of_type(all.substr(0, rule)), all.substr(rule + 1)};
}

bool takes_value(const CLI::Option& option) { return option.get_items_expected_max() > 0; }
bool takes_many(const CLI::Option& option) { return option.get_items_expected_max() > 1; }

std::string option_form(const CLI::Option& option) {
  if (option.get_positional()) return option.get_name(true);
  std::vector<std::string> names;
  for (const auto& name : option.get_snames()) names.push_back("-" + name);
  for (const auto& name : option.get_lnames()) names.push_back("--" + name);
  return fmt::format("{}{}", fmt::join(names, ", "), takes_value(option) ? " " + value_type(option).name : "");
}

std::string option_help(const CLI::App& app, const CLI::Option& option) {
  auto text = option.get_description();
  const auto add = [&](const std::string& note) { text += (text.empty() ? "" : " ") + note; };
  if (const auto rule = value_type(option).rule; takes_value(option) && !rule.empty()) add(rule);
  if (auto otherwise = option.get_default_str(); !otherwise.empty()) {
    if (takes_many(option)) std::erase_if(otherwise, [](char c) { return c == '[' || c == ']'; });
    add(fmt::format("(default: {})", otherwise));
  }
  if (option.get_required()) add("(required)");
  if (takes_many(option) && !option.get_positional()) add("(may be repeated)");
  if (const auto needs = option.get_needs(); !needs.empty()) add(fmt::format("(only with {})", names_in(app, needs)));
  if (const auto others = option.get_excludes(); !others.empty())
    add(fmt::format("(not with {})", names_in(app, others)));
  return text;
}

std::string usage_line(const Command& command, const CLI::App& app) {
  auto text = full_name(app);
  for (const auto* option : app.get_options())
    if (option->get_required() && !option->get_positional()) text += " " + option_form(*option);
  text += " [OPTIONS]";
  for (const auto* option : app.get_options()) {
    if (!option->get_positional()) continue;
    const auto name = option->get_name(true) + (takes_many(*option) ? "..." : "");
    text += option->get_required() ? " " + name : fmt::format(" [{}]", name);
  }
  if (!command.subcommands.empty()) text += " SUBCOMMAND";
  return text;
}

std::string full_name(const CLI::App& app) {
  return app.get_parent() == nullptr ? app.get_name() : full_name(*app.get_parent()) + " " + app.get_name();
}

std::string command_help(const Command& command, const CLI::App& app, std::size_t columns) {
  auto text = fmt::format("Examples:\n{}\n{}\n{}\n", examples_of(command.examples, columns),
                          wrapped(command.summary, columns, 0, 0),
                          wrapped("Usage: " + usage_line(command, app), columns, 4, 0));
  std::vector<Row> arguments, flags, subcommands;
  for (const auto* option : app.get_options())
    (option->get_positional() ? arguments : flags).push_back({option_form(*option), option_help(app, *option)});
  for (const auto& sub : command.subcommands)
    if (!sub.hidden) subcommands.push_back({sub.name, sub.summary});
  return text + rows_text("Arguments", arguments, columns) + rows_text("Options", flags, columns) +
         rows_text("Subcommands", subcommands, columns);
}

core::Result<std::string> keys_help(const core::Schema& schema, std::string_view topic, std::size_t columns,
                                    std::string_view command, std::string_view flag) {
  if (topic.empty()) return overview(schema, columns, command, flag);
  if (topic == "all") return schema.help(columns);
  if (is_topic(schema, topic)) return schema.help(columns, topic);
  if (topic.find('.') != std::string_view::npos)
    return core::fail(core::Errc::usage, fmt::format("--help {}: {}", topic, schema.unknown(topic)));
  auto topics = schema.sections();
  topics.emplace_back("all");
  return core::fail(core::Errc::usage,
                    fmt::format("--help {}: no such section{}: one of {}", topic,
                                core::nearest_hint(topic, topics, core::Quotes::no), fmt::join(topics, " | ")));
}

std::string layers_help(std::size_t columns) {
  std::vector<Row> rows;
  for (const auto& type : nn::layer_types()) {
    std::vector<std::string> keys;
    for (const auto& key : type.keys)
      keys.push_back(key.otherwise.empty() ? key.name + " (required)"
                                           : fmt::format("{} = {}", key.name, key.otherwise));
    rows.push_back({type.name, keys.empty() ? "no keys" : fmt::format("{}", fmt::join(keys, ", "))});
  }
  const std::vector<Row> further{
      {"every layer",
       "name; inputs: names of earlier layers, or \"input\" (without it, the layer before); auxiliary_loss: "
       "the weight of a loss of its own"},
      {"a block", "layers, and name, inputs, repeat: layers that come once, or repeat times (docs/models.md)"}};
  return rows_text("Types of layers for model.layers, with their keys and defaults", rows, columns) +
         rows_text("Keys besides these", further, columns);
}

}  // namespace troupe::apps
