#include "experiment/state/state_checks.hpp"

#include <algorithm>
#include <array>
#include <set>
#include <string>
#include <string_view>

#include <fmt/format.h>

#include "core/buffer.hpp"
#include "core/text/plural.hpp"
#include "nn/layout.hpp"

namespace troupe::experiment {
namespace {

using core::Errc;
using core::fail;
using core::Result;

/// The backends' arenas are as large as the plain one, or larger.
Result<void> check_shards(const RunSpec& spec) {
  const auto shards = nn::plain_layout(*spec.graph).arena_floats() / core::kAlignmentFloats;
  if (shards == 0 || spec.servers <= shards) return {};  // a program may tell its parameters later
  const auto parameters = static_cast<std::uint64_t>(spec.graph->parameter_count());
  return fail(Errc::config, fmt::format("{}: cluster.servers = {}: the model's {} are too few for so many shards: at "
                                        "most {}",
                                        spec.settings->config.where("cluster.servers"), spec.servers,
                                        core::counted(parameters, "parameter"), core::counted(shards, "server")));
}

/// States are saved under a prefix and their parameter's name (docs/formats/checkpoint.md).
Result<void> check_names(const RunSpec& spec) {
  constexpr std::array<std::string_view, 4> kPrefixes{"center.", "optimizer.", "server.", "worker."};
  std::set<std::string_view> names;
  for (const auto& parameter : spec.graph->parameters()) names.insert(parameter.name);
  for (const std::string_view name : names) {
    if (std::ranges::none_of(kPrefixes, [&](auto prefix) { return name.starts_with(prefix); })) continue;
    for (auto dot = name.find('.'); dot != std::string_view::npos; dot = name.find('.', dot + 1)) {
      const auto other = name.substr(dot + 1);
      if (!names.contains(other)) continue;
      const auto* key = spec.graph->is_program() ? "model.command" : "model.layers";
      return fail(Errc::config,
                  fmt::format("{}: in a checkpoint the parameter \"{}\" has the name of a state of \"{}\": give its "
                              "layer a name that does not begin with \"{}\"",
                              spec.settings->config.where(key), name, other, name.substr(0, name.find('.') + 1)));
    }
  }
  return {};
}

}  // namespace

Result<void> check_state(const RunSpec& spec) {
  if (auto shards = check_shards(spec); !shards) return shards;
  return check_names(spec);
}

}  // namespace troupe::experiment
