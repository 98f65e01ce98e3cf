#include <algorithm>
#include <cctype>
#include <cmath>
#include <filesystem>
#include <map>
#include <span>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "nn/hash.hpp"
#include "store/query/export.hpp"
#include "store/query/export_files.hpp"
#include "store/query/started.hpp"

namespace troupe::store {
namespace {

namespace fs = std::filesystem;
// MLflow's limits, in characters.
constexpr std::size_t kLongestParameter = 6000, kLongestKey = 250;

/// YAML's double quotes are JSON's, but for characters beyond U+FFFF: YAML knows no pairs of surrogates. All is ASCII: YAML takes some
/// characters for ends of lines, and its readers refuse others.
std::string yaml_text(const std::string& text) {
  const auto json = nlohmann::json(text).dump(-1, ' ', true, nlohmann::json::error_handler_t::replace);
  std::string yaml;
  for (std::size_t at = 0; at < json.size();) {
    if (json[at] != '\\') {
      yaml += json[at++];
    } else if (json[at + 1] != 'u') {
      yaml.append(json, at, 2);
      at += 2;
    } else {
      auto code = std::stoul(json.substr(at + 2, 4), nullptr, 16);
      at += 6;
      if (code >= 0xD800 && code < 0xDC00) {
        code = 0x10000 + ((code - 0xD800) << 10U) + (std::stoul(json.substr(at + 2, 4), nullptr, 16) - 0xDC00);
        at += 6;
      }
      yaml += fmt::format("\\U{:08x}", code);
    }
  }
  return yaml;
}

double real_of(const Cell& cell) {
  if (const auto* whole = std::get_if<std::int64_t>(&cell)) return static_cast<double>(*whole);
  const auto* number = std::get_if<double>(&cell);
  return number == nullptr ? 0 : *number;
}

/// MLflow's numbers: running 1, finished 3, failed 4, killed 5.
int mlflow_status(const std::string& status) {
  if (status == "running") return 1;
  if (status == "done") return 3;
  return status == "killed" || status == "interrupted" ? 5 : 4;
}

/// A file of this name can be made and stays where it is meant to be, whatever a foreign configuration has for keys.
bool is_file_name(const std::string& key) {
  return !key.empty() && key.size() <= kLongestKey && key[0] != '.' && std::ranges::all_of(key, [](unsigned char c) {
    return std::isalnum(c) != 0 || c == '_' || c == '-' || c == '.';
  });
}

/// MLflow's steps are whole: the epoch where all are, else the number of the point.
std::string mlflow_metric(const std::vector<const Point*>& points, std::int64_t begin) {
  const bool whole =
      std::ranges::all_of(points, [](const Point* point) { return std::floor(point->epoch) == point->epoch; });
  std::string text;
  for (std::size_t i = 0; i < points.size(); ++i)
    text += fmt::format("{} {} {}\n", begin + std::llround(points[i]->seconds * 1000), points[i]->value,
                        whole ? std::llround(points[i]->epoch) : static_cast<long long>(i) + 1);
  return text;
}

}  // namespace

core::Result<MlflowWriter> MlflowWriter::create(const std::string& directory, const std::string& origin) {
  if (auto checked = check_new_directory(directory); !checked) return tl::unexpected(std::move(checked.error()));
  const auto experiment = fs::path(directory) / "0";
  const auto meta = fmt::format(
      "artifact_location: {}\ncreation_time: 0\nexperiment_id: '0'\nlast_update_time: 0\nlifecycle_stage: "
      "active\nname: {}\n",
      yaml_text(fs::absolute(experiment).string()), yaml_text("troupe " + origin));
  if (auto written = write_export(experiment / "meta.yaml", meta); !written) return tl::unexpected(written.error());
  return MlflowWriter(directory, origin);
}

core::Result<void> MlflowWriter::add(const RunDetails& run, const std::vector<Point>& curves) const {
  nn::Hash128 hash;
  const auto whole = origin_ + "/" + run.path;
  hash.add(std::as_bytes(std::span(whole)));
  const auto id = hash.hex();
  const auto folder = fs::path(directory_) / "0" / id;
  const auto begin = 1000 * seconds_since_1970(run.started);
  const auto* wall = find(run.results, "wall_s");
  const double seconds = wall == nullptr ? 0 : real_of(*wall);
  const auto end =
      run.status == "running" ? std::string("null") : fmt::format("{}", begin + std::llround(seconds * 1000));
  const auto meta = fmt::format(
      "artifact_uri: {}\nend_time: {}\nentry_point_name: ''\nexperiment_id: '0'\nlifecycle_stage: active\nrun_id: "
      "'{}'\n"
      "run_name: {}\nrun_uuid: '{}'\nsource_name: ''\nsource_type: 4\nsource_version: ''\nstart_time: {}\nstatus: {}\n"
      "tags: []\nuser_id: ''\n",
      yaml_text((fs::absolute(folder) / "artifacts").string()), end, id, yaml_text(run.name), id, begin,
      mlflow_status(run.status));
  std::map<fs::path, std::string> files{
      {"meta.yaml", meta},
      {"tags/mlflow.runName", utf8_of(run.name)},
      {"tags/mlflow.note.content", utf8_of(run.notes.note)},
      {"tags/troupe.run", utf8_of(run.path)},
      {"tags/troupe.tags", utf8_of(fmt::format("{}", fmt::join(run.notes.tags, " ")))}};
  for (const auto& tag : run.notes.tags)  // another tag stands in troupe.tags only
    if (const auto key = "tag." + tag; is_file_name(key)) files[fs::path("tags") / key] = "true";
  for (const auto& [key, value] : run.options)
    if (is_file_name(key)) files[fs::path("params") / key] = first_bytes(utf8_of(text_of(value)), kLongestParameter);
  std::map<std::string, std::vector<const Point*>> series;
  for (const auto& point : curves) series[point.series].push_back(&point);
  for (const auto& [name, points] : series)
    if (is_file_name(name)) files[fs::path("metrics") / name] = mlflow_metric(points, begin);
  for (const auto& [key, value] : run.results)
    if (is_file_name(key) && !series.contains(key) && !std::holds_alternative<std::string>(value))
      files[fs::path("metrics") / key] = fmt::format("{} {} 0\n", begin, text_of(value));
  for (const auto& [name, text] : files)
    if (auto written = write_export(folder / name, text); !written) return written;
  std::error_code ignored;
  fs::create_directories(folder / "artifacts", ignored);
  return {};
}

}  // namespace troupe::store
