#include "service/live/run_state.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include <fmt/format.h>

#include "service/live/metrics_line.hpp"
#include "strategies/host/accounts.hpp"

namespace troupe::service {
namespace {

using nlohmann::ordered_json;

double number_in(const ordered_json& line, const char* key, double otherwise = 0) {
  const auto found = line.find(key);
  return found != line.end() && found->is_number() ? found->get<double>() : otherwise;
}

/// A file may say anything: what no counter reaches is taken for a missing number.
std::int64_t whole_in(const ordered_json& line, const char* key, std::int64_t otherwise = 0) {
  constexpr double kMost = 1e15;
  const auto number = number_in(line, key, static_cast<double>(otherwise));
  return std::abs(number) <= kMost ? static_cast<std::int64_t>(number) : otherwise;
}

std::string text_in(const ordered_json& line, const char* key) {
  const auto found = line.find(key);
  return found != line.end() && found->is_string() ? found->get<std::string>() : std::string();
}

ordered_json value_in(const ordered_json& line, const char* key) {
  const auto found = line.find(key);
  return found == line.end() ? ordered_json() : *found;
}

constexpr std::array kWorkerKeys{"steps",         "samples",    "compute_s", "forward_s", "backward_s",
                                 "optimizer_s",   "exchange_s", "wait_s",    "load_s",    "bytes",
                                 "exchanges",     "dropped",    "skipped",   "refused",   "staleness_mean",
                                 "staleness_max", "passed",     "replaced"};
constexpr std::size_t kMostColumns = 4096;  // a file may say anything
constexpr std::size_t kMostTraffic = 4 * kMostColumns;
constexpr std::size_t kMostSplits = 8;      // the recorder knows three
constexpr std::size_t kMostMoments = 1000;  // of a worker in a window, which reports ten times a second

/// A list that is no longer than any that the recorder writes; else an empty one.
ordered_json list_in(const ordered_json& line, const char* key, std::size_t most) {
  auto list = value_in(line, key);
  return list.is_array() && list.size() <= most ? list : ordered_json::array();
}

/// What the recorder writes in such a line, and nothing else that a file may say.
template <std::size_t kCount>
ordered_json chosen(const ordered_json& line, const std::array<const char*, kCount>& keys) {
  constexpr std::size_t kLongestText = 2000;
  auto kept = ordered_json::object();
  for (const auto* key : keys) {
    const ordered_json value = value_in(line, key);
    const bool fits =
        value.is_string() ? value.get_ref<const std::string&>().size() <= kLongestText : value.is_primitive();
    kept[key] = fits ? value : ordered_json();
  }
  return kept;
}
constexpr std::array kMemberKeys{"t", "event", "worker", "node", "reason", "steps", "epoch", "train_s", "members"};
constexpr std::array kLedgerKeys{"t",      "epoch",       "size",     "done",     "given_up", "leased",
                                 "free",   "omitted",     "useful",   "computed", "lost",     "returned",
                                 "passed", "rolled_back", "possible", "goodput",  "wall_s"};

}  // namespace

std::string RunState::read(std::string_view text) {
  const auto line = metrics_line(text);
  if (!line.is_object()) return {};
  auto kind = text_in(line, "kind");
  t_ = number_in(line, "t", t_);
  if (kind == "started") started(line);
  if (kind == "worker") worker(line);
  if (kind == "epoch") {
    epoch_ = number_in(line, "epoch", epoch_);
    steps_ = whole_in(line, "steps");
    evaluated(line, "train", value_in(line, "train"));
    evaluated(line, "test", value_in(line, "test"));
  }
  if (kind == "evaluation") evaluated(line, text_in(line, "split"), line);
  if (kind == "member") member(chosen(line, kMemberKeys));
  if (kind == "ledger") ledger(line);
  if (kind == "note") {
    notes_.push_back({{"t", value_in(line, "t")},
                      {"level", value_in(line, "level")},
                      {"text", value_in(line, "text")},
                      {"wall_s", wall_s(t_)}});
    if (notes_.size() > kNotes) notes_.pop_front();
  }
  if (kind == "ended") {
    error_ = value_in(line, "error");
    wall_ = {t_, number_in(line, "wall_s", wall_s(t_))};
    outcome_ = error_.is_object() ? text_in(error_, "code") : "done";
  }
  return kind;
}

void RunState::started(const ordered_json& line) {
  outcome_.clear();
  error_ = nullptr;
  workers_.clear();
  servers_ = whole_in(line, "servers");
  epochs_ = number_in(line, "epochs");
  epoch_samples_ = number_in(line, "epoch_samples");
  epoch_ = number_in(line, "epoch_position");
  epochs_done_.start(epoch_, epoch_samples_, epochs_);
  // Lines of older programs do not have these.
  steps_before_ = whole_in(line, "steps", steps_);
  samples_before_ = number_in(line, "samples", epoch_ * epoch_samples_);
  steps_ = steps_before_;
  computed_before_ = number_in(ledger_, "computed");
  wall_ = {t_, number_in(ledger_, "wall_s")};
  member({{"t", value_in(line, "t")}, {"event", "started"}, {"worker", nullptr}, {"epoch", epoch_}});
}

double RunState::wall_s(double t) const { return wall_.seconds + std::max(t - wall_.t, 0.0); }

void RunState::member(ordered_json event) {
  event["wall_s"] = wall_s(t_);
  members_.push_back(std::move(event));
  if (members_.size() > kMembers) members_.pop_front();
}

void RunState::ledger(const ordered_json& line) {
  ledger_ = chosen(line, kLedgerKeys);
  wall_ = {t_, number_in(line, "wall_s", wall_s(t_))};
  const auto epochs =
      experiment::ledger_position(number_in(line, "epoch"), number_in(line, "size"), number_in(line, "omitted"),
                                  number_in(line, "done") + number_in(line, "given_up"));
  // The ledger may know of steps that the workers' own lines tell later.
  if (epochs) epochs_done_.learn(*epochs, std::max(computed(), number_in(line, "computed") - computed_before_));
}

void RunState::worker(const ordered_json& line) {
  const auto rank = whole_in(line, "worker", -1);
  if (workers_.size() >= kMostColumns && !workers_.contains(rank)) return;
  auto& member = workers_[rank];
  const double samples = number_in(line, "samples");
  if (!member.recent.empty() && samples < member.recent.back().samples) member.recent.clear();
  member.t = t_;
  member.recent.push_back({t_, samples});
  // The first moment stays before the window, so that a rate always spans all of it.
  while (member.recent.size() > 2 && (member.recent[1].t < t_ - kWindow || member.recent.size() > kMostMoments))
    member.recent.pop_front();
  // A report without samples since the one before has none of these.
  if (const auto recent = line.find("recent"); recent != line.end() && recent->is_object())
    for (const auto& [key, kept] :
         {std::pair{"loss", &member.loss}, {"accuracy", &member.accuracy}, {"distance", &member.distance}})
      if (const auto value = recent->find(key); value != recent->end() && value->is_number()) *kept = *value;
  // With many members they are not in each line.
  if (line.contains("waits")) member.waits = list_in(line, "waits", kMostColumns);
  if (line.contains("traffic")) member.traffic = list_in(line, "traffic", kMostTraffic);
  member.report = line;
  for (const auto* table : {"waits", "traffic"}) member.report.erase(table);
}

void RunState::evaluated(const ordered_json& line, const std::string& split, const ordered_json& scores) {
  if (!scores.is_object() || split.empty()) return;
  if (evaluations_.size() >= kMostSplits && !evaluations_.contains(split)) return;
  evaluations_[split] = {{"split", split},
                         {"t", value_in(line, "t")},
                         {"epoch", value_in(line, "epoch")},
                         {"steps", value_in(line, "steps")},
                         {"loss", value_in(scores, "loss")},
                         {"accuracy", value_in(scores, "accuracy")},
                         {"top5", value_in(scores, "top5")},
                         {"lr", value_in(line, "lr")},
                         {"train_s", value_in(line, "train_s")}};
}

double RunState::rate(const Member& member) {
  const auto& first = member.recent.front();
  const auto& last = member.recent.back();
  return last.t > first.t ? (last.samples - first.samples) / (last.t - first.t) : 0;
}

double RunState::computed() const {
  double samples = 0;
  for (const auto& [rank, member] : workers_) samples += number_in(member.report, "samples");
  return samples;
}

double RunState::epochs_done() const {
  if (!(epoch_samples_ > 0)) return epoch_;
  return std::max(epoch_, epochs_done_.after(computed()));
}

/// Columns: workers by rank, then servers. A row is as long as its worker's report says.
ordered_json RunState::waits() const {
  auto rows = ordered_json::array(), columns = ordered_json::array(), seconds = ordered_json::array();
  std::size_t widest = 0;
  for (const auto& [rank, member] : workers_) {
    widest = std::max(widest, member.waits.size());
    rows.push_back(fmt::format("worker {}", rank));
    seconds.push_back(member.waits);
  }
  const auto workers = widest - std::min(widest, static_cast<std::size_t>(std::max<std::int64_t>(servers_, 0)));
  for (std::size_t i = 0; i < widest; ++i)
    columns.push_back(i < workers ? fmt::format("worker {}", i) : fmt::format("server {}", i - workers));
  return {{"rows", rows}, {"columns", columns}, {"seconds", seconds}};
}

ordered_json RunState::staleness() const {
  auto workers = ordered_json::array();
  for (const auto& [rank, member] : workers_)
    workers.push_back({{"worker", rank},
                       {"mean", value_in(member.report, "staleness_mean")},
                       {"max", value_in(member.report, "staleness_max")},
                       {"updates", value_in(member.report, "staleness")}});
  return {{"edges", strategies::StalenessHistogram::kEdges}, {"workers", workers}};
}

ordered_json RunState::json(double since_last_line, std::string_view status, std::uint64_t position) const {
  const double now = t_ + since_last_line;
  double rates = 0;
  auto steps = steps_before_;
  auto workers = ordered_json::array();
  for (const auto& [rank, member] : workers_) {
    // A worker that has fallen silent computes nothing that is known.
    const double speed = outcome_.empty() && now - member.t <= kWindow ? rate(member) : 0;
    steps += whole_in(member.report, "steps");
    rates += speed;
    ordered_json one{{"worker", rank}};
    for (const auto* key : kWorkerKeys) one[key] = value_in(member.report, key);
    one["samples_per_s"] = speed;
    one["loss"] = member.loss;
    one["accuracy"] = member.accuracy;
    one["traffic"] = member.traffic;
    one["distance"] = member.distance;
    one["gradient_norm_mean"] = value_in(member.report, "gradient_norm_mean");
    one["seconds_since_report"] = std::max(0.0, now - member.t);
    workers.push_back(std::move(one));
  }
  auto evaluations = ordered_json::array();
  for (const auto& [split, evaluation] : evaluations_) evaluations.push_back(evaluation);
  return {{"t", now},
          {"wall_s", wall_s(now)},
          {"status", status},
          {"epoch", epochs_done()},
          {"epochs", epochs_},
          {"steps", std::max(steps, steps_)},
          {"samples", samples_before_ + computed()},
          {"samples_per_s", rates},
          {"position", position},
          {"servers", servers_},
          {"error", error_},
          {"workers", workers},
          {"waits", waits()},
          {"staleness", staleness()},
          {"notes", notes_},
          {"members", members_},
          {"ledger", ledger_},
          {"evaluations", evaluations}};
}

}  // namespace troupe::service
