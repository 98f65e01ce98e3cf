#include "nn/layer_types.hpp"

#include <algorithm>
#include <map>
#include <optional>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "core/text/layout.hpp"
#include "core/text/nearest.hpp"

namespace troupe::nn {
namespace {

using nlohmann::json;

/// Keys of every layer, which layers_config.cpp reads.
bool is_common(const std::string& key) {
  return key == "type" || key == "name" || key == "inputs" || key == "auxiliary_loss";
}

/// Reads one table. After the first error later reads return defaults, so that the code of a layer is a list of its keys, which
/// layer_types() reads, too.
class Reader {
 public:
  Reader(const json& table, std::string where, Initialiser weight)
      : table_(table), where_(std::move(where)), weight_(weight) {}

  /// `said`: the default in words, where it is no constant.
  std::int64_t integer(const std::string& key, std::optional<std::int64_t> otherwise = std::nullopt,
                       const std::string& said = {}) {
    const json* value = find(key, !said.empty() ? said : otherwise ? std::to_string(*otherwise) : "");
    if (value == nullptr) {
      if (!otherwise) fail_once(fmt::format("{} is missing", key));
      return otherwise.value_or(1);
    }
    if (!value->is_number_integer())
      return fail_once(fmt::format("{} = {}: must be an integer", key, value->dump())), 1;
    return value->get<std::int64_t>();
  }
  double number(const std::string& key, double otherwise, const std::string& said = {}) {
    const json* value = find(key, !said.empty() ? said : core::readable(otherwise));
    if (value == nullptr) return otherwise;
    if (!value->is_number()) return fail_once(fmt::format("{} = {}: must be a number", key, value->dump())), otherwise;
    return value->get<double>();
  }
  bool flag(const std::string& key, bool otherwise) {
    const json* value = find(key, otherwise ? "true" : "false");
    if (value == nullptr) return otherwise;
    if (!value->is_boolean())
      return fail_once(fmt::format("{} = {}: must be true or false", key, value->dump())), otherwise;
    return value->get<bool>();
  }
  std::string word(const std::string& key, const std::string& otherwise, const std::vector<std::string>& known,
                   const std::string& said = {}) {
    const json* value = find(key, !said.empty() ? said : fmt::format("\"{}\"", otherwise));
    if (value == nullptr) return otherwise;
    if (!value->is_string())
      return fail_once(fmt::format("{} = {}: must be text in quotes", key, value->dump())), otherwise;
    auto text = value->get<std::string>();
    if (std::ranges::find(known, text) == known.end())
      fail_once(fmt::format("{} = \"{}\": must be one of {}{}", key, text, fmt::join(known, " | "),
                            core::nearest_hint(text, known, core::Quotes::yes)));
    return text;
  }
  Initialiser initialiser() {
    Initialiser result = weight_;
    static const std::vector<std::string> known{"normal", "uniform", "xavier", "he"};
    const auto name = word("initialiser", "", known, "model.initialiser");
    if (!name.empty())
      if (const auto kind = parse_initialiser(name, "initialiser")) result.kind = *kind;
    result.scale = number("init_scale", result.scale, "model.init_scale");
    return result;
  }

  /// Returns `layer`, or the error. An unknown key is reported first: it is often the reason why another key is missing.
  core::Result<Layer> finish(Layer layer) {
    for (const auto& [key, value] : table_.items()) {
      if (is_common(key) || std::ranges::find(keys_, key, &LayerKey::name) != keys_.end()) continue;
      std::vector<std::string> names;
      for (const auto& known : keys_) names.push_back(known.name);
      auto hint = core::nearest_hint(key, names, core::Quotes::yes);
      if (hint.empty()) hint = names.empty() ? ": it has none" : fmt::format(": it has {}", fmt::join(names, ", "));
      problem_.reset();
      fail_once(fmt::format("unknown key \"{}\"{}", key, hint));
      break;
    }
    if (problem_) return core::fail(core::Errc::config, *problem_);
    return layer;
  }

  [[nodiscard]] const std::vector<LayerKey>& keys() const noexcept { return keys_; }

 private:
  const json* find(const std::string& key, const std::string& otherwise) {
    keys_.push_back({key, otherwise});
    const auto it = table_.find(key);
    return it == table_.end() ? nullptr : &*it;
  }
  void fail_once(const std::string& why) {
    if (!problem_) problem_ = fmt::format("{}: {}", where_, why);
  }

  const json& table_;
  std::string where_;
  Initialiser weight_;
  std::vector<LayerKey> keys_;
  std::optional<std::string> problem_;
};

using Parse = core::Result<Layer> (*)(Reader&);

core::Result<Layer> linear(Reader& r) {
  LinearLayer layer{r.integer("outputs"), r.initialiser()};
  return r.finish(layer);
}
core::Result<Layer> conv2d(Reader& r) {
  Conv2dLayer layer;
  layer.outputs = r.integer("outputs");
  layer.kernel = r.integer("kernel");
  layer.stride = r.integer("stride", 1);
  layer.padding = r.integer("padding", 0);
  layer.groups = r.integer("groups", 1);
  layer.bias = r.flag("bias", true);
  layer.weight = r.initialiser();
  return r.finish(layer);
}
core::Result<Layer> pool(Reader& r) {
  PoolLayer layer;
  layer.kind = r.word("kind", "max", {"max", "average"}) == "average" ? PoolKind::average : PoolKind::max;
  layer.kernel = r.integer("kernel", 2);
  layer.stride = r.integer("stride", layer.kernel, "the kernel");
  layer.padding = r.integer("padding", 0);
  layer.ceil = r.flag("ceil", false);
  return r.finish(layer);
}
core::Result<Layer> adaptive_average_pool(Reader& r) { return r.finish(AdaptiveAveragePoolLayer{r.integer("size")}); }
core::Result<Layer> global_average_pool(Reader& r) { return r.finish(AdaptiveAveragePoolLayer{1}); }
core::Result<Layer> add(Reader& r) { return r.finish(AddLayer{}); }
core::Result<Layer> concat(Reader& r) { return r.finish(ConcatLayer{}); }
core::Result<Layer> dropout(Reader& r) {
  DropoutLayer layer{r.number("rate", 0.5)};
  return r.finish(layer);
}
template <Activation kKind>
core::Result<Layer> activation(Reader& r) {
  return r.finish(ActivationLayer{kKind});
}
core::Result<Layer> flatten(Reader& r) { return r.finish(FlattenLayer{}); }
core::Result<Layer> lrn(Reader& r) {
  LrnLayer layer;
  layer.size = r.integer("size", layer.size);
  layer.alpha = r.number("alpha", layer.alpha);
  layer.beta = r.number("beta", layer.beta);
  layer.k = r.number("k", layer.k);
  return r.finish(layer);
}
core::Result<Layer> batch_norm(Reader& r) {
  BatchNormLayer layer;
  layer.epsilon = r.number("epsilon", layer.epsilon);
  layer.momentum = r.number("momentum", layer.momentum);
  layer.initial_weight = r.number("initial_weight", layer.initial_weight);
  return r.finish(layer);
}

const std::map<std::string, Parse>& parsers() {
  static const std::map<std::string, Parse> table{{"adaptive_average_pool", adaptive_average_pool},
                                                  {"add", add},
                                                  {"batch_norm", batch_norm},
                                                  {"concat", concat},
                                                  {"conv2d", conv2d},
                                                  {"dropout", dropout},
                                                  {"flatten", flatten},
                                                  {"global_average_pool", global_average_pool},
                                                  {"linear", linear},
                                                  {"lrn", lrn},
                                                  {"pool", pool},
                                                  {"relu", activation<Activation::relu>},
                                                  {"tanh", activation<Activation::tanh>},
                                                  {"sigmoid", activation<Activation::sigmoid>}};
  return table;
}

}  // namespace

core::Result<Layer> parse_layer(const nlohmann::json& table, const std::string& where, const Initialiser& weight) {
  const auto refuse = [&](const std::string& why) {
    return core::fail(core::Errc::config, fmt::format("{}: {}", where, why));
  };
  std::vector<std::string> types;
  for (const auto& [type, parse] : parsers()) types.push_back(type);
  if (!table.is_object()) return refuse(fmt::format("{} is not a table like {{type = \"relu\"}}", table.dump()));
  const auto type = table.find("type");
  if (type == table.end()) return refuse(fmt::format("type is missing: one of {}", fmt::join(types, " | ")));
  if (!type->is_string()) return refuse(fmt::format("type = {}: must be text in quotes", type->dump()));
  const auto name = type->get<std::string>();
  const auto found = parsers().find(name);
  if (found == parsers().end())
    return refuse(fmt::format("unknown type \"{}\"{}: one of {}", name,
                              core::nearest_hint(name, types, core::Quotes::yes), fmt::join(types, " | ")));
  Reader reader(table, fmt::format("{} ({})", where, name), weight);
  return found->second(reader);
}

std::string_view layer_type(const Layer& layer) {
  struct Types {
    std::string_view operator()(const LinearLayer&) const { return "linear"; }
    std::string_view operator()(const Conv2dLayer&) const { return "conv2d"; }
    std::string_view operator()(const PoolLayer&) const { return "pool"; }
    std::string_view operator()(const ActivationLayer& l) const { return to_string(l.kind); }
    std::string_view operator()(const DropoutLayer&) const { return "dropout"; }
    std::string_view operator()(const FlattenLayer&) const { return "flatten"; }
    std::string_view operator()(const LrnLayer&) const { return "lrn"; }
    std::string_view operator()(const BatchNormLayer&) const { return "batch_norm"; }
    std::string_view operator()(const AdaptiveAveragePoolLayer& l) const {
      return l.size == 1 ? "global_average_pool" : "adaptive_average_pool";
    }
    std::string_view operator()(const AddLayer&) const { return "add"; }
    std::string_view operator()(const ConcatLayer&) const { return "concat"; }
  };
  return std::visit(Types{}, layer);
}

const std::vector<LayerType>& layer_types() {
  static const std::vector<LayerType> types = [] {
    std::vector<LayerType> all;
    for (const auto& [name, parse] : parsers()) {
      const json nothing = json::object();
      Reader reader(nothing, name, {});
      [[maybe_unused]] const auto layer = parse(reader);
      all.push_back({name, reader.keys()});
    }
    return all;
  }();
  return types;
}

core::Result<InitialiserKind> parse_initialiser(std::string_view name, std::string_view key) {
  if (name == "normal") return InitialiserKind::normal;
  if (name == "uniform") return InitialiserKind::uniform;
  if (name == "xavier") return InitialiserKind::xavier;
  if (name == "he") return InitialiserKind::he;
  return core::fail(core::Errc::config,
                    fmt::format("{} = \"{}\": must be one of normal | uniform | xavier | he", key, name));
}

}  // namespace troupe::nn
