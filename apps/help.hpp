/// Help texts in lines of the terminal's width: of a command, and of the keys of a configuration. Pure.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include <CLI/CLI.hpp>

#include "apps/command.hpp"
#include "core/config/config.hpp"

namespace troupe::apps {

/// "troupe bench step".
[[nodiscard]] std::string full_name(const CLI::App& app);

/// What stands for an option's value, and its rule: "N" and "[between 1 and 8]"; empty where there is none.
struct ValueType {
  std::string name;
  std::string rule;
};
[[nodiscard]] ValueType value_type(const CLI::Option& option);
[[nodiscard]] bool takes_value(const CLI::Option& option);
[[nodiscard]] bool takes_many(const CLI::Option& option);  // values

/// "-n, --name N", or an argument's name.
[[nodiscard]] std::string option_form(const CLI::Option& option);
/// Its description with rule, default, and the options that it needs or excludes.
[[nodiscard]] std::string option_help(const CLI::App& app, const CLI::Option& option);
/// "troupe bench step [OPTIONS] [CONFIG]".
[[nodiscard]] std::string usage_line(const Command& command, const CLI::App& app);

/// Examples, usage, arguments, flags and subcommands. `app`: as the command has declared it.
[[nodiscard]] std::string command_help(const Command& command, const CLI::App& app, std::size_t columns);

/// Help about the keys of a file. Without a `topic` it lists the sections and their keys; a topic is a section, a key ("train.lr"), or
/// "all". `command`: the one that has this help ("troupe train"); `flag` sets a key. Errc::usage: no such topic, with the nearest.
[[nodiscard]] core::Result<std::string> keys_help(const core::Schema& schema, std::string_view topic,
                                                  std::size_t columns, std::string_view command, std::string_view flag);

/// Every type of layer with its keys and their defaults, the keys of all layers, and those of a block.
[[nodiscard]] std::string layers_help(std::size_t columns);

}  // namespace troupe::apps
