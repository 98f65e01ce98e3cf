#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <span>
#include <string_view>

#include <fmt/format.h>
#include <zlib.h>

#include "nn/hash.hpp"
#include "store/query/export.hpp"
#include "store/query/export_files.hpp"
#include "store/query/started.hpp"
#include "store/query/wandb.pb.h"

namespace troupe::store {
namespace {

constexpr std::size_t kWandbBlock = 32'768, kWandbHead = 7;
enum class Fragment : unsigned char { full = 1, first = 2, middle = 3, last = 4 };

/// The log format of LevelDB (doc/log_format.md) with a head of W&B's, and zlib's CRC-32 over type and data.
class WandbLog {
 public:
  WandbLog() : text_(":W&B\xE1\xBE", 6) { text_ += '\0'; }

  void add(wandb::Record& record) {
    record.set_num(++records_);
    std::string data;
    record.SerializeToString(&data);
    std::string_view rest = data;
    for (bool begun = false;; begun = true) {
      auto room = kWandbBlock - text_.size() % kWandbBlock;
      if (room < kWandbHead) {
        text_.append(room, '\0');
        room = kWandbBlock;
      }
      const bool ends = rest.size() <= room - kWandbHead;
      const auto part = rest.substr(0, room - kWandbHead);
      add(part, begun ? (ends ? Fragment::last : Fragment::middle) : (ends ? Fragment::full : Fragment::first));
      rest.remove_prefix(part.size());
      if (ends) return;
    }
  }
  [[nodiscard]] const std::string& text() const noexcept { return text_; }

 private:
  void add(std::string_view part, Fragment fragment) {
    const auto type = static_cast<unsigned char>(fragment);
    auto sum = ::crc32(0, &type, 1);
    sum = ::crc32(sum, reinterpret_cast<const unsigned char*>(part.data()), static_cast<uInt>(part.size()));
    for (int byte = 0; byte < 4; ++byte) text_ += static_cast<char>(sum >> (8 * byte) & 0xFFU);
    text_ += static_cast<char>(part.size() & 0xFFU);
    text_ += static_cast<char>(part.size() >> 8U);
    text_ += static_cast<char>(type);
    text_ += part;
  }
  std::string text_;
  std::int64_t records_ = 0;
};

using OrderedJson = nlohmann::ordered_json;

/// Puts `value` where the dots of `key` say. False: a part of the key is empty, or is or has a value already.
bool nest(OrderedJson& table, std::string_view key, const OrderedJson& value) {
  const auto dot = key.find('.');
  const std::string part(key.substr(0, dot));
  const auto found = table.find(part);
  if (part.empty() || (found != table.end() && (dot == std::string_view::npos || !found->is_object()))) return false;
  if (dot == std::string_view::npos) {
    table[part] = value;
    return true;
  }
  if (found != table.end()) return nest(*found, key.substr(dot + 1), value);
  auto inner = OrderedJson::object();
  if (!nest(inner, key.substr(dot + 1), value)) return false;
  table[part] = std::move(inner);
  return true;
}

/// {"test.loss": 1} becomes {"test": {"loss": 1}}, as wandb itself writes what is nested: its tables show, filter and sort that as test.loss,
/// while a name with a dot of its own may be neither filtered nor sorted. A key that cannot be nested stays whole; a second value is left out.
void put(OrderedJson& tree, const std::string& key, const OrderedJson& value) {
  if (!key.empty() && !nest(tree, key, value)) tree.emplace(key, OrderedJson(value));
}

/// A list of W&B's has an item per top-level key, in the order of `tree`.
template <class List>
void put_items(List* list, const OrderedJson& tree) {
  for (const auto& [key, value] : tree.items()) {
    auto* const item = list->Add();
    item->set_key(utf8_of(key));
    item->set_value_json(value.dump(-1, ' ', false, OrderedJson::error_handler_t::replace));
  }
}

/// Points of one moment are one row: W&B's steps are the numbers of rows.
void put_history(WandbLog& log, const std::vector<Point>& curves, std::int64_t begin_s) {
  std::map<std::pair<double, double>, std::vector<const Point*>> rows;  // by seconds and epoch
  for (const auto& point : curves) rows[{point.seconds, point.epoch}].push_back(&point);
  std::int64_t step = 0;
  for (const auto& [when, points] : rows) {
    wandb::Record record;
    auto* const history = record.mutable_history();
    history->mutable_step()->set_num(step);
    OrderedJson row{{"_step", step},
                    {"_runtime", when.first},
                    {"_timestamp", static_cast<double>(begin_s) + when.first},
                    {"epoch", when.second}};
    for (const auto* point : points) put(row, point->series, point->value);
    put_items(history->mutable_item(), row);
    log.add(record);
    ++step;
  }
}

}  // namespace

core::Result<WandbWriter> WandbWriter::create(const std::string& directory, const std::string& origin) {
  if (auto checked = check_new_directory(directory); !checked) return tl::unexpected(std::move(checked.error()));
  return WandbWriter(directory, origin);
}

core::Result<void> WandbWriter::add(const RunDetails& run, const std::vector<Point>& curves) const {
  nn::Hash128 hash;
  const auto whole = origin_ + "/" + run.path;
  hash.add(std::as_bytes(std::span(whole)));
  const auto id = hash.hex().substr(0, 16);
  const auto begin_s = seconds_since_1970(run.started);
  WandbLog log;
  wandb::Record head;
  head.mutable_header();
  log.add(head);
  wandb::Record record;
  auto* const described = record.mutable_run();
  described->set_run_id(id);
  described->set_project("troupe");
  described->set_display_name(utf8_of(run.name));
  described->set_notes(utf8_of(run.notes.note));
  described->set_run_group(utf8_of(run.grid));
  for (const auto& tag : run.notes.tags) described->add_tags(utf8_of(tag));
  described->mutable_start_time()->set_seconds(begin_s);
  auto config = OrderedJson::object();
  for (const auto& [key, value] : run.options) put(config, key, json_of(value));
  put_items(described->mutable_config()->mutable_update(), config);
  log.add(record);
  put_history(log, curves, begin_s);
  auto results = OrderedJson::object();
  double wall_s = 0;
  for (const auto& [key, value] : run.results) {
    const auto json = json_of(value);
    if (key == "wall_s" && json.is_number()) wall_s = json.get<double>();
    put(results, key, json);
  }
  wandb::Record summary;
  put_items(summary.mutable_summary()->mutable_update(), results);
  log.add(summary);
  if (run.status != "running") {
    constexpr double kLongest_s = 1e9;
    wandb::Record exit;
    exit.mutable_exit()->set_exit_code(run.status == "done" ? 0 : 1);
    exit.mutable_exit()->set_runtime(static_cast<std::int32_t>(std::clamp(wall_s, 0.0, kLongest_s)));
    log.add(exit);
    wandb::Record finished, footer;
    finished.mutable_finished();
    log.add(finished);
    footer.mutable_footer();
    log.add(footer);
  }
  auto time = run.started;  // "2026-01-02 03:04:05" → "20260102_030405"
  std::erase_if(time, [](char c) { return c == '-' || c == ':'; });
  std::ranges::replace(time, ' ', '_');
  if (begin_s == 0) time = "19700101_000000";
  return write_export(
      std::filesystem::path(directory_) / fmt::format("offline-run-{}-{}", time, id) / fmt::format("run-{}.wandb", id),
      log.text());
}

}  // namespace troupe::store
