#include "service/datasets/dataset_registry.hpp"

#include <algorithm>
#include <array>
#include <filesystem>
#include <span>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "core/text/nearest.hpp"
#include "core/text/read_text.hpp"
#include "data/registry.hpp"
#include "experiment/settings.hpp"
#include "nn/checkpoint/file_system.hpp"

namespace troupe::service {
namespace {

constexpr std::size_t kLongestName = 100;

bool is_dataset_name(std::string_view text) {
  const auto is_bad = [](unsigned char c) { return c <= ' ' || c == 0x7f || c == '/' || c == '\\'; };
  return !text.empty() && text.size() <= kLongestName && text.front() != '.' && std::ranges::none_of(text, is_bad);
}

core::Result<data::DataConfig> config_of(const DatasetEntry& entry) {
  std::vector<std::string> overrides{"data.name=" + core::to_toml(core::Value{entry.kind})};
  if (!entry.path.empty()) overrides.push_back("data.path=" + core::to_toml(core::Value{entry.path}));
  if (entry.resize > 0) overrides.push_back(fmt::format("data.resize={}", entry.resize));
  auto config =
      core::Config::parse(experiment::schema(), "[model]\nname = \"mlp\"\n", entry.name, overrides, entry.name);
  if (!config) return tl::unexpected(std::move(config.error()));
  auto settings = experiment::resolve(std::move(*config), experiment::Use::remains);
  if (!settings) return tl::unexpected(std::move(settings.error()));
  return settings->data;
}

}  // namespace

DatasetRegistry::DatasetRegistry(std::string file) : file_(std::move(file)) {
  std::error_code ignored;
  folder_ = (std::filesystem::absolute(file_, ignored).lexically_normal().parent_path() / "datasets").string();
}

core::Result<std::unique_ptr<DatasetRegistry>> DatasetRegistry::open(std::string file) {
  std::unique_ptr<DatasetRegistry> registry(new DatasetRegistry(std::move(file)));
  std::error_code error;
  if (!std::filesystem::exists(registry->file_, error)) {
    if (error) return tl::unexpected(core::from_errno(error.value(), "look for", registry->file_));
    return registry;
  }
  const auto text = core::read_text("list of data sets", registry->file_);
  if (!text) return core::fail(core::Errc::io, text.error().message);
  const auto json = nlohmann::json::parse(*text, nullptr, false);
  try {
    for (const auto& one : json.at("datasets")) {
      DatasetEntry entry{one.at("name").get<std::string>(), one.at("kind").get<std::string>(),
                         one.at("path").get<std::string>(), one.at("resize").get<std::int64_t>(),
                         one.value("folder", std::string())};
      if (!entry.folder.empty()) entry.path = registry->folder_ + "/" + entry.folder;  // the directory may have moved
      registry->entries_.insert_or_assign(entry.name, entry);
    }
  } catch (const nlohmann::json::exception&) {
    return core::fail(core::Errc::corrupt, fmt::format("{} is no list of data sets: remove it", registry->file_));
  }
  return registry;
}

std::vector<DatasetEntry> DatasetRegistry::list() const {
  const std::scoped_lock lock(mutex_);
  std::vector<DatasetEntry> all;
  for (const auto& [name, entry] : entries_) all.push_back(entry);
  return all;
}

std::optional<DatasetEntry> DatasetRegistry::find(std::string_view name) const {
  const std::scoped_lock lock(mutex_);
  const auto place = entries_.find(name);
  return place == entries_.end() ? std::nullopt : std::optional(place->second);
}

core::Result<void> DatasetRegistry::check(const DatasetEntry& entry) const {
  const auto refuse = [](std::string text) { return core::fail(core::Errc::config, std::move(text)); };
  if (!is_dataset_name(entry.name))
    return refuse(fmt::format("name: it has 1 to {} bytes, does not begin with '.', and has no blanks, '/' or '\\'",
                              kLongestName));
  const auto* row = data::find_dataset(entry.kind);
  if (row == nullptr) {
    std::vector<std::string> kinds;
    for (const auto& one : data::dataset_registry()) kinds.emplace_back(one.name);
    return refuse(fmt::format("kind: no data set is called \"{}\"{}", entry.kind,
                              core::nearest_hint(entry.kind, kinds, core::Quotes::no)));
  }
  if (auto fits = config_of(entry); !fits) return tl::unexpected(std::move(fits.error()));
  return {};
}

core::Result<void> DatasetRegistry::add(const DatasetEntry& entry) {
  const auto refuse = [](std::string text) { return core::fail(core::Errc::config, std::move(text)); };
  if (auto good = check(entry); !good) return good;
  std::error_code error;
  if (!data::find_dataset(entry.kind)->drawn && !std::filesystem::exists(entry.path, error))
    return refuse(fmt::format("path: there is no {} on the service's host", entry.path.empty() ? "path" : entry.path));
  const std::scoped_lock lock(mutex_);
  if (entries_.contains(entry.name)) return refuse(fmt::format("name: {} is taken", entry.name));
  if (entries_.size() >= kMostDatasets)
    return refuse(fmt::format("there are {} data sets already: remove some", kMostDatasets));
  auto changed = entries_;
  changed.emplace(entry.name, entry);
  if (auto written = write(changed); !written) return written;
  entries_ = std::move(changed);
  return {};
}

core::Result<bool> DatasetRegistry::remove(const std::string& name) {
  const std::scoped_lock lock(mutex_);
  auto changed = entries_;
  if (changed.erase(name) == 0) return false;
  if (auto written = write(changed); !written) return tl::unexpected(std::move(written.error()));
  entries_ = std::move(changed);
  return true;
}

core::Result<void> DatasetRegistry::write(const Entries& entries) const {
  auto list = nlohmann::ordered_json::array();
  for (const auto& [name, entry] : entries)
    list.push_back({{"name", name},
                    {"kind", entry.kind},
                    {"path", entry.path},
                    {"resize", entry.resize},
                    {"folder", entry.folder}});
  const auto text = nlohmann::ordered_json{{"datasets", std::move(list)}}.dump(
                        -1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) +
                    "\n";
  const std::filesystem::path path(file_);
  const std::array parts{std::as_bytes(std::span(text))};
  return nn::replace_file(nn::system_files(), path.parent_path().string(), path.filename().string(), parts);
}

core::Result<std::shared_ptr<const data::Dataset>> open_split(const DatasetEntry& entry, data::Split split,
                                                              std::int64_t limit) {
  const auto* row = data::find_dataset(entry.kind);
  if (row == nullptr) return core::fail(core::Errc::config, fmt::format("no data set is called \"{}\"", entry.kind));
  return config_of(entry).and_then([&](const data::DataConfig& config) { return row->open(config, split, limit); });
}

core::Result<DatasetFacts> inspect(const DatasetEntry& entry) {
  DatasetFacts facts;
  {
    const auto train = open_split(entry, data::Split::train, 0);
    if (!train) return tl::unexpected(train.error());
    facts.train = (*train)->size();
    facts.classes = (*train)->class_names();
    for (auto label = facts.classes.size(); label < static_cast<std::size_t>((*train)->classes()); ++label)
      facts.classes.push_back(std::to_string(label));
    const auto shape = (*train)->shape();
    facts.channels = shape.channels;
    facts.height = shape.height;
    facts.width = shape.width;
  }
  const auto test = open_split(entry, data::Split::test, 0);
  if (!test) return tl::unexpected(test.error());
  facts.test = (*test)->size();
  return facts;
}

}  // namespace troupe::service
