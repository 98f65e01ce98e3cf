#include "nn/layers_config.hpp"

#include <algorithm>
#include <map>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "core/text/nearest.hpp"
#include "nn/node_names.hpp"

namespace troupe::nn {
namespace {

using nlohmann::json;

constexpr std::int64_t kMostRepeats = 1000;
constexpr std::size_t kMostLayers = 10'000;
constexpr std::size_t kMostDepth = 8;

/// A list of tables: the whole model, or one repetition of a block.
struct Scope {
  std::string prefix;     // of names: "block.0."
  std::string input;      // what "input" means here
  const Scope* outer;     // null: the whole model
  std::size_t depth = 1;  // lists around its tables
};

class ListReader {
 public:
  ListReader(const Initialiser& weight, const Where& where) : weight_(weight), where_(where) {}

  /// Adds the layers of `list`, which the text calls `name` ("model.layers").
  core::Result<void> read(const json& list, const std::string& name, const Scope& scope) {
    if (!list.is_array() || (list.empty() && scope.outer != nullptr))
      return refuse(name, name + ": must be a list of tables like {type = \"relu\"}");
    if (scope.depth > kMostDepth)
      return refuse(name, fmt::format("{}: more than {} lists in each other", name, kMostDepth));
    std::string previous = scope.input;
    for (std::size_t i = 0; i < list.size(); ++i) {
      const auto entry = fmt::format("{}[{}]", name, i);
      const bool block = list[i].is_object() &&
                         (list[i].contains("layers") || (list[i].contains("repeat") && !list[i].contains("type")));
      auto read = block ? read_block(list[i], entry, scope, previous) : read_layer(list[i], entry, scope, previous);
      if (!read) return read;
      if (result_.nodes.size() > kMostLayers)
        return refuse(entry, fmt::format("{}: there are more than {} layers by here", entry, kMostLayers));
      previous = result_.nodes.back().name;
    }
    return {};
  }

  LayerList take() && { return std::move(result_); }

 private:
  [[nodiscard]] tl::unexpected<core::Error> refuse(const std::string& entry, const std::string& why) const {
    return core::fail(core::Errc::config, placed(where_, entry.substr(0, entry.find(']') + 1), why));
  }

  /// The full name of what `wanted` means in `scope`; empty: nothing.
  [[nodiscard]] std::string look_up(const std::string& wanted, const Scope& scope) const {
    if (wanted == kInputName) return scope.input;
    for (const Scope* at = &scope; at != nullptr; at = at->outer)
      if (names_.contains(at->prefix + wanted)) return at->prefix + wanted;
    return {};
  }

  /// The text of `table`'s key; empty where there is none.
  core::Result<std::string> text_of(const json& table, const char* key, const std::string& entry) const {
    const auto found = table.find(key);
    if (found == table.end()) return std::string();
    const bool good = found->is_string() && !found->get<std::string>().empty() && *found != json(kInputName) &&
                      found->get<std::string>().find_first_of(" \t\n,\"") == std::string::npos;
    if (!good)
      return refuse(entry, fmt::format("{}: {} = {}: must be a word in quotes, and not \"{}\"", entry, key,
                                       found->dump(), kInputName));
    return found->get<std::string>();
  }

  /// The full names of `table`'s inputs; without them `otherwise`.
  core::Result<std::vector<std::string>> inputs_of(const json& table, const std::string& entry, const Scope& scope,
                                                   const std::string& otherwise) const {
    const auto found = table.find("inputs");
    if (found == table.end()) return std::vector{otherwise};
    std::vector<std::string> inputs;
    const json list = found->is_string() ? json::array({*found}) : *found;
    for (const json& wanted : list) {
      if (!list.is_array() || !wanted.is_string())
        return refuse(entry, fmt::format("{}: inputs = {}: must be a list of names", entry, found->dump()));
      inputs.push_back(look_up(wanted.get<std::string>(), scope));
      if (inputs.back().empty())
        return refuse(entry,
                      fmt::format("{}: inputs: no earlier layer is called {}{}", entry, wanted.dump(),
                                  core::nearest_hint(wanted.get<std::string>(), names_.all(), core::Quotes::yes)));
    }
    if (inputs.empty()) return refuse(entry, fmt::format("{}: inputs = []: must have a name", entry));
    return inputs;
  }

  core::Result<void> read_layer(const json& table, const std::string& entry, const Scope& scope,
                                const std::string& previous) {
    if (table.is_object() && table.contains("repeat"))
      return refuse(entry, entry + ": repeat belongs to a block: {repeat = 2, layers = [{type = …}]}");
    auto layer = parse_layer(table, placed(where_, entry.substr(0, entry.find(']') + 1), entry), weight_);
    if (!layer) return tl::unexpected(std::move(layer.error()));
    const auto type = fmt::format("{} ({})", entry, table.at("type").get<std::string>());
    const auto given = text_of(table, "name", type);
    if (!given) return tl::unexpected(given.error());
    auto inputs = inputs_of(table, type, scope, previous);
    if (!inputs) return tl::unexpected(std::move(inputs.error()));
    const auto name = names_.take(*layer, given->empty() ? "" : scope.prefix + *given, scope.prefix);
    if (name.empty())
      return refuse(entry, fmt::format("{}: the name \"{}\" is that of an earlier layer", type, scope.prefix + *given));
    if (const auto weight = table.find("auxiliary_loss"); weight != table.end()) {
      if (!weight->is_number() || !(weight->get<double>() >= 0))
        return refuse(entry, fmt::format("{}: auxiliary_loss = {}: must be a number ≥ 0", type, weight->dump()));
      result_.auxiliary.push_back({name, weight->get<double>()});
    }
    result_.nodes.push_back({*layer, name, std::move(*inputs)});
    result_.places.layers.push_back(placed(where_, entry.substr(0, entry.find(']') + 1), type));
    return {};
  }

  core::Result<void> read_block(const json& table, const std::string& entry, const Scope& scope,
                                const std::string& previous) {
    static const std::vector<std::string> known{"repeat", "name", "inputs", "layers"};
    for (const auto& [key, value] : table.items())
      if (std::ranges::find(known, key) == known.end())
        return refuse(entry, fmt::format("{}: unknown key \"{}\"{}: a block has {}", entry, key,
                                         core::nearest_hint(key, known, core::Quotes::yes), fmt::join(known, ", ")));
    if (!table.contains("layers")) return refuse(entry, entry + ": layers is missing: what the block repeats");
    const json repeat = table.value("repeat", json(1));
    if (!repeat.is_number_integer() || repeat.get<std::int64_t>() < 1 || repeat.get<std::int64_t>() > kMostRepeats)
      return refuse(
          entry, fmt::format("{}: repeat = {}: must be an integer from 1 to {}", entry, repeat.dump(), kMostRepeats));
    const auto given = text_of(table, "name", entry);
    if (!given) return tl::unexpected(given.error());
    const auto inputs = inputs_of(table, entry, scope, previous);
    if (!inputs) return tl::unexpected(inputs.error());
    if (inputs->size() != 1) return refuse(entry, fmt::format("{}: inputs: a block has one", entry));
    const auto name = given->empty() ? fmt::format("block{}", ++blocks_[scope.prefix]) : *given;
    std::string input = inputs->front();
    for (std::int64_t i = 0; i < repeat.get<std::int64_t>(); ++i) {
      const auto number = table.contains("repeat") ? fmt::format(".{}", i) : "";
      const Scope inner{fmt::format("{}{}{}.", scope.prefix, name, number), input, &scope, scope.depth + 1};
      if (auto read = this->read(table.at("layers"), entry + ".layers", inner); !read) return read;
      if (result_.nodes.size() > kMostLayers) return {};  // read() says so
      input = result_.nodes.back().name;
    }
    return {};
  }

  const Initialiser& weight_;
  const Where& where_;
  NodeNames names_;
  std::map<std::string, int> blocks_;  // without a name, by the prefix around them
  LayerList result_;
};

}  // namespace

std::string placed(const Where& where, const std::string& key, const std::string& text) {
  const auto at = where ? where(key) : "default";
  return at == "default" ? text : fmt::format("{}: {}", at, text);
}

core::Result<LayerList> parse_layers(const core::Structure& layers, const Initialiser& weight, const Where& where) {
  ListReader reader(weight, where);
  const json list = json::parse(layers.json, nullptr, /*allow_exceptions=*/false);
  if (auto read = reader.read(list, "model.layers", {.prefix = "", .input = std::string(kInputName), .outer = nullptr});
      !read)
    return tl::unexpected(std::move(read.error()));
  auto result = std::move(reader).take();
  result.places.model = placed(where, "model.layers", "model.layers");
  return result;
}

}  // namespace troupe::nn
