#include "apps/grid/grid_file.hpp"

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>
#include <system_error>
#include <utility>

#include <fmt/format.h>
#include <toml++/toml.h>

#include "apps/grid/toml_text.hpp"
#include "core/text/nearest.hpp"
#include "strategies/registry/registry.hpp"

namespace troupe::grid {
namespace {

using core::Errc;
using core::Result;

constexpr std::string_view kNameKey = "run.name";
constexpr std::string_view kDirectoryKey = "run.dir";

/// Reads one document; keeps the names for messages.
class Reader {
 public:
  Reader(const std::string& path, const core::Schema& schema) : path_(path), schema_(schema) {}

  Result<GridFile> read(const toml::table& document) {
    GridFile file;
    file.path = path_;
    file.name = std::filesystem::path(path_).stem().string();
    for (const auto& [name, node] : document) {
      const std::string key(name.str());
      auto done = key == "base"      ? bases(node, file)
                  : key == "seeds"   ? seeds(node, file)
                  : key == "grid"    ? grid(node, file)
                  : key == "zip"     ? zips(node, file)
                  : key == "only"    ? only(node, file)
                  : key == "exclude" ? excludes(node, file)
                  : key == "sweep"   ? sweep(node, file)
                                     : unknown(key, name.source());
      if (!done) return tl::unexpected(std::move(done.error()));
    }
    if (file.bases.empty())
      return core::fail(Errc::config, fmt::format("{}: missing key \"base\": the configuration that is varied", path_));
    if (auto fit = check_together(file); !fit) return tl::unexpected(std::move(fit.error()));
    return file;
  }

 private:
  [[nodiscard]] std::string at(const toml::source_region& source) const {
    return fmt::format("{}:{}", path_, source.begin.line);
  }
  static tl::unexpected<core::Error> refuse(const std::string& where, std::string_view message) {
    return core::fail(Errc::config, fmt::format("{}: {}", where, message));
  }

  Result<void> unknown(const std::string& key, const toml::source_region& source) const {
    return refuse(at(source),
                  fmt::format("unknown key \"{}\"{}; keys of runs stand in [grid]", key,
                              core::nearest_hint(key, {"base", "seeds", "grid", "zip", "only", "exclude", "sweep"},
                                                 core::Quotes::yes)));
  }

  Result<void> bases(const toml::node& node, GridFile& file) const {
    const auto add = [&](const toml::node& element) {
      if (const auto* text = element.as_string(); text != nullptr && !text->get().empty())
        file.bases.push_back(text->get());
    };
    std::size_t expected = 1;
    if (const auto* list = node.as_array()) {
      expected = list->size();
      for (const auto& element : *list) add(element);
    } else {
      add(node);
    }
    if (file.bases.empty() || file.bases.size() != expected)
      return refuse(at(node.source()), "base must be the path of a configuration, or a list of such");
    return {};
  }

  Result<void> seeds(const toml::node& node, GridFile& file) const {
    const auto* list = node.as_array();
    if (list != nullptr)
      for (const auto& element : *list)
        if (const auto* number = element.as_integer(); number != nullptr && number->get() >= 0)
          file.seeds.push_back(number->get());
    if (list == nullptr || list->empty() || file.seeds.size() != list->size())
      return refuse(at(node.source()), "seeds must be a list of integers ≥ 0");
    if (std::set(file.seeds.begin(), file.seeds.end()).size() != file.seeds.size())
      return refuse(at(node.source()), "seeds has a number twice");
    return {};
  }

  Result<void> grid(const toml::node& node, GridFile& file) const {
    auto found = axes(node, "[grid]");
    if (!found) return tl::unexpected(std::move(found.error()));
    file.axes = std::move(*found);
    return {};
  }

  Result<void> zips(const toml::node& node, GridFile& file) const {
    const auto* list = node.as_array();
    if (list == nullptr || !list->is_array_of_tables())
      return refuse(at(node.source()), "write [[zip]]: a group of keys");
    for (const auto& element : *list) {
      auto group = axes(element, "[[zip]]");
      if (!group) return tl::unexpected(std::move(group.error()));
      for (const auto& axis : *group)
        if (axis.values.size() != group->front().values.size())
          return refuse(axis.where,
                        fmt::format("{} has {} values and {} has {}: the lists of a [[zip]] group advance "
                                    "together and must have one length",
                                    axis.key, axis.values.size(), group->front().key, group->front().values.size()));
      if (!group->empty()) file.zips.push_back(std::move(*group));
    }
    return {};
  }

  Result<void> only(const toml::node& node, GridFile& file) const {
    const auto* blocks = node.as_table();
    if (blocks == nullptr) return refuse(at(node.source()), "write [only.easgd]: a block of keys for one strategy");
    for (const auto& [name, block] : *blocks) {
      const std::string strategy(name.str());
      if (strategies::find(strategy) == nullptr) {
        std::vector<std::string> known;
        for (const auto& info : strategies::registry()) known.push_back(info.name);
        return refuse(at(name.source()), fmt::format("[only.{0}]: no strategy is called \"{0}\"{1}", strategy,
                                                     core::nearest_hint(strategy, known, core::Quotes::no)));
      }
      auto found = axes(block, fmt::format("[only.{}]", strategy));
      if (!found) return tl::unexpected(std::move(found.error()));
      for (const auto& axis : *found)
        if (axis.key == kStrategyKey)
          return refuse(axis.where, fmt::format("[only.{}] cannot change strategy.name", strategy));
      file.only.push_back({strategy, std::move(*found)});
    }
    return {};
  }

  Result<void> excludes(const toml::node& node, GridFile& file) const {
    const auto* list = node.as_array();
    if (list == nullptr || !list->is_array_of_tables())
      return refuse(at(node.source()), "write [[exclude]]: keys, and the values that leave a combination out");
    for (const auto& element : *list) {
      Exclude exclude;
      if (auto found = leaves(*element.as_table(), "", exclude.keys); !found) return found;
      if (exclude.keys.empty())
        return refuse(at(element.source()), "[[exclude]] without keys would leave out every run");
      file.excludes.push_back(std::move(exclude));
    }
    return {};
  }

  Result<void> sweep(const toml::node& node, GridFile& file) const {
    auto table = read_sweep_table(node, path_);
    if (!table) return tl::unexpected(std::move(table.error()));
    file.sweep = std::move(*table);
    return {};
  }

  /// The axes of one table, in the order of the file; every key is valid.
  Result<std::vector<Axis>> axes(const toml::node& node, std::string_view block) const {
    const auto* table = node.as_table();
    if (table == nullptr) return refuse(at(node.source()), fmt::format("{} must be a table of keys and lists", block));
    std::vector<Axis> found;
    if (auto read = leaves(*table, "", found); !read) return tl::unexpected(std::move(read.error()));
    for (const auto& axis : found) {
      if (axis.key == kSeedKey) return refuse(axis.where, "seeds stand above the blocks: seeds = [1, 2, 3]");
      if (axis.key == kNameKey || axis.key == kDirectoryKey)
        return refuse(axis.where, fmt::format("{} cannot vary: the grid names its runs, in one directory", axis.key));
      if (!is_option(axis.key)) return refuse(axis.where, schema_.unknown(axis.key));
    }
    return found;
  }

  [[nodiscard]] bool is_option(const std::string& key) const {
    return std::ranges::any_of(schema_.options(), [&](const core::Option& option) { return option.key == key; });
  }

  /// Visits tables recursively; a table that is the value of a key is its range, any other node is the value list of a key.
  Result<void> leaves(const toml::table& table, const std::string& prefix, std::vector<Axis>& found) const {
    std::vector<std::pair<const toml::key*, const toml::node*>> order;  // toml++ sorts by name; the file's order counts
    for (const auto& [name, node] : table) order.emplace_back(&name, &node);
    std::ranges::stable_sort(order, {}, [](const auto& entry) {
      const auto& begin = entry.first->source().begin;
      return std::pair(begin.line, begin.column);
    });
    for (const auto& [name, node] : order) {
      const std::string key = prefix + std::string(name->str());
      if (const auto* inner = node->as_table(); inner != nullptr && is_option(key)) {
        auto range = read_range(*inner, key, at(name->source()));
        if (!range) return tl::unexpected(std::move(range.error()));
        found.push_back({key, {}, at(name->source()), *range});
        continue;
      }
      if (const auto* inner = node->as_table()) {
        if (auto read = leaves(*inner, key + ".", found); !read) return read;
        continue;
      }
      Axis axis{key, {}, at(name->source()), {}};
      const auto add = [&](const toml::node& value) -> Result<void> {
        auto text = toml_text(value);
        if (!text) return refuse(axis.where, fmt::format("{}: {}", key, text.error()));
        if (std::ranges::find(axis.values, *text) != axis.values.end())
          return refuse(
              axis.where,
              fmt::format("{} has {} twice (a list as one value needs brackets of its own: [[1, 1, 4]])", key, *text));
        axis.values.push_back(std::move(*text));
        return {};
      };
      if (const auto* list = node->as_array()) {
        if (list->empty()) return refuse(axis.where, fmt::format("{} has no values", key));
        for (const auto& element : *list)
          if (auto added = add(element); !added) return added;
      } else if (auto added = add(*node); !added) {
        return added;
      }
      found.push_back(std::move(axis));
    }
    return {};
  }

  /// Checks that a key is varied in one place only (besides [only]), and that [[exclude]] names existing values.
  static Result<void> check_together(const GridFile& file) {
    std::vector<const Axis*> seen, zipped, all;
    for (const auto& axis : file.axes) seen.push_back(&axis);
    for (const auto& group : file.zips)
      for (const auto& axis : group) zipped.push_back(&axis);
    if (auto fits = check_sweep(file); !fits) return fits;
    const auto same = [](const Axis& axis) { return [&](const Axis* other) { return other->key == axis.key; }; };
    for (const auto* axis : zipped) {
      if (const auto twice = std::ranges::find_if(seen, same(*axis)); twice != seen.end())
        return refuse(axis->where, fmt::format("{} is varied already at {}", axis->key, (*twice)->where));
      seen.push_back(axis);
    }
    all = seen;
    for (const auto& block : file.only)
      for (const auto& axis : block.axes) {
        if (const auto twice = std::ranges::find_if(zipped, same(axis)); twice != zipped.end())
          return refuse(axis.where, fmt::format("{} is in a [[zip]] group already, at {}", axis.key, (*twice)->where));
        all.push_back(&axis);
      }
    for (const auto& exclude : file.excludes)
      for (const auto& rule : exclude.keys)
        if (auto fits = check_exclude(file, rule, all); !fits) return fits;
    return {};
  }

  /// What a sweep cannot have, and what a grid cannot have.
  static Result<void> check_sweep(const GridFile& file) {
    const auto ranged = [](const std::vector<Axis>& axes) {
      const auto found = std::ranges::find_if(axes, [](const Axis& axis) { return axis.range.has_value(); });
      return found == axes.end() ? nullptr : &*found;
    };
    for (const auto& group : file.zips)
      if (const auto* axis = ranged(group))
        return refuse(axis->where, fmt::format("{}: a [[zip]] group has lists, no ranges", axis->key));
    for (const auto& exclude : file.excludes)
      if (const auto* axis = ranged(exclude.keys))
        return refuse(axis->where, fmt::format("{}: [[exclude]] names values, no ranges", axis->key));
    if (file.sweep) {
      if (!file.zips.empty())
        return refuse(file.zips.front().front().where,
                      "a sweep searches each key by itself: without [[zip]]; a grid (no [sweep]) has them");
      if (!file.excludes.empty())
        return refuse(file.excludes.front().keys.front().where,
                      "a sweep finds out by itself which values are bad: without [[exclude]]; a grid (no [sweep]) has "
                      "them");
      if (file.bases.size() > 1) return refuse(file.sweep->where, "a sweep has one base: what its runs have in common");
      if (file.seeds.size() > 1)
        return refuse(file.sweep->where,
                      "a sweep trains each setting once: seeds has one number at most; compare its best settings over "
                      "several seeds by a grid");
      return {};
    }
    const Axis* axis = ranged(file.axes);
    for (const auto& block : file.only)
      if (axis == nullptr) axis = ranged(block.axes);
    if (axis == nullptr) return {};
    return refuse(axis->where,
                  fmt::format("{} has a range, which is for sweeps: add [sweep], or list its values", axis->key));
  }

  static Result<void> check_exclude(const GridFile& file, const Axis& rule, const std::vector<const Axis*>& all) {
    std::vector<std::string> values;
    if (rule.key == kBaseKey)
      for (const auto& base : file.bases) values.push_back(core::to_toml(core::Value{base}));
    if (rule.key == kSeedKey)
      for (const auto seed : file.seeds) values.push_back(fmt::format("{}", seed));
    for (const auto* axis : all)
      if (axis->key == rule.key) values.insert(values.end(), axis->values.begin(), axis->values.end());
    if (values.empty()) return refuse(rule.where, fmt::format("[[exclude]]: this grid does not vary {}", rule.key));
    for (const auto& value : rule.values)
      if (std::ranges::find(values, value) == values.end())
        return refuse(rule.where, fmt::format("[[exclude]]: {} is never {} in this grid", rule.key, value));
    return {};
  }

  const std::string& path_;
  const core::Schema& schema_;
};

}  // namespace

Result<GridFile> parse(std::string_view text, const std::string& path, const core::Schema& schema) {
  try {
    return Reader(path, schema).read(toml::parse(text, path));
  } catch (const toml::parse_error& error) {
    return core::fail(Errc::config, fmt::format("{}:{}: {}", path, error.source().begin.line, error.description()));
  }
}

Result<GridFile> load(const std::string& path, const core::Schema& schema) {
  std::ostringstream text;
  errno = 0;
  std::ifstream file(path, std::ios::binary);
  if (file) text << file.rdbuf();
  if (!file || file.bad())
    return core::fail(Errc::config, fmt::format("cannot read grid {}: {}", path,
                                                std::generic_category().message(errno != 0 ? errno : ENOENT)));
  return parse(text.str(), path, schema);
}

std::string key_of(const std::string& override_text) {
  std::string key = override_text.substr(0, override_text.find('='));
  std::erase_if(key, [](char c) { return c == ' ' || c == '\t'; });
  return key;
}

Result<void> fix(GridFile& file, const std::vector<std::string>& overrides) {
  for (const auto& text : overrides) {
    const auto key = key_of(text);
    const auto same = [&](const Axis& axis) { return axis.key == key; };
    if (key == kNameKey) return core::fail(Errc::config, "--set: run.name: the grid names its runs");
    for (const auto& group : file.zips)
      if (const auto axis = std::ranges::find_if(group, same); axis != group.end())
        return core::fail(Errc::config, fmt::format("--set: {} is in a [[zip]] group, at {}: it cannot be set apart",
                                                    key, axis->where));
    if (key == kSeedKey) file.seeds.clear();
    std::erase_if(file.axes, same);
    for (auto& block : file.only) std::erase_if(block.axes, same);
  }
  return {};
}

}  // namespace troupe::grid
