#include "store/metrics_reader.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace troupe::store {
namespace {

using Json = nlohmann::json;
constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
constexpr const char *kValidation = "validation", *kBest = "best";

nlohmann::ordered_json finite_or_null(double value) {
  return std::isfinite(value) ? nlohmann::ordered_json(value) : nlohmann::ordered_json();
}

template <class AnyJson>
double number_in(const AnyJson& json, const char* key) {
  const auto found = json.find(key);
  return found != json.end() && found->is_number() ? found->template get<double>() : kNone;
}

std::string text_in(const Json& json, const char* key) {
  const auto found = json.find(key);
  return found != json.end() && found->is_string() ? found->get<std::string>() : std::string();
}

/// Leaves out what is not finite.
void add_point(NewPoints& found, std::string series, double epoch, double seconds, double value) {
  if (std::isfinite(epoch) && std::isfinite(seconds) && std::isfinite(value))
    found.points.push_back({std::move(series), epoch, seconds, value});
}

}  // namespace

MetricsReader::MetricsReader(std::string_view state) {
  const auto json = Json::parse(state, nullptr, false);
  if (!json.is_object()) return;
  try {
    restore(json);
  } catch (const Json::exception&) {  // a value of another kind: the database is damaged, or another program wrote it
    *this = MetricsReader();
  }
}

void MetricsReader::restore(const Json& json) {
  sessions_ = json.value("sessions", std::int64_t{0});
  bad_lines_ = json.value("bad_lines", std::int64_t{0});
  outcome_ = json.value("outcome", "");
  error_ = json.value("error", "");
  position_ = json.value("position", 0.0);
  epoch_samples_ = json.value("epoch_samples", 0.0);
  seconds_ = json.value("seconds", 0.0);
  latest_ = json.value("latest", 0.0);
  for (const auto& row : json.value("workers", Json::array()))
    workers_[row.at(0).get<std::int64_t>()] = {row.at(1).get<double>(), row.at(2).get<double>()};
  const auto so_far = json.value("so_far", nlohmann::ordered_json::object());
  if (so_far.is_object()) so_far_ = so_far;
}

std::string MetricsReader::state() const {
  auto workers = Json::array();
  if (outcome_.empty())  // a run that goes on after an end begins a session
    for (const auto& [rank, worker] : workers_) workers.push_back({rank, worker.samples, worker.busy_s});
  return Json{{"sessions", sessions_}, {"bad_lines", bad_lines_}, {"outcome", outcome_},
              {"error", error_},       {"position", position_},   {"epoch_samples", epoch_samples_},
              {"seconds", seconds_},   {"latest", latest_},       {"workers", workers},
              {"so_far", so_far_}}
      .dump(-1, ' ', false, Json::error_handler_t::replace);
}

NewPoints MetricsReader::read(std::string_view lines, std::string_view monitor) {
  NewPoints found{std::numeric_limits<double>::infinity(), {}};
  while (!lines.empty()) {
    const auto end = std::min(lines.find('\n'), lines.size());
    if (end > 0) read_line(lines.substr(0, end), monitor, found);
    lines.remove_prefix(std::min(end + 1, lines.size()));
  }
  return found;
}

void MetricsReader::read_line(std::string_view text, std::string_view monitor, NewPoints& found) {
  const auto line = Json::parse(text, nullptr, false);
  if (!line.is_object()) {
    ++bad_lines_;
    return;
  }
  const auto kind = text_in(line, "kind");
  if (kind == "started") started(line, found);
  if (kind == "worker") worker(line, found);
  if (kind == "epoch") epoch(line, found);
  if (kind == "evaluation") evaluation(line, monitor, found);
  if (kind == "ended") ended(line);
}

void MetricsReader::started(const Json& line, NewPoints& found) {
  ++sessions_;
  outcome_.clear();
  error_.clear();
  workers_.clear();
  if (const double samples = number_in(line, "epoch_samples"); samples > 0) epoch_samples_ = samples;
  if (const double position = number_in(line, "epoch_position"); std::isfinite(position)) {
    constexpr double kSame = 1e-9;
    position_ = position;
    found.kept = std::min(found.kept, position + kSame);
    std::erase_if(found.points, [&](const Point& point) { return point.epoch > position + kSame; });
    if (auto split = so_far_.find(kValidation); split != so_far_.end() && split->contains(kBest))
      if (number_in((*split)[kBest], "epoch") > position + kSame) split->erase(kBest);
  }
  seconds_ = latest_;
  for (const char* key : {"strategy", "model", "dataset", "workers", "servers"})
    if (const auto value = line.find(key); value != line.end() && value->is_primitive()) so_far_[key] = *value;
}

void MetricsReader::worker(const Json& line, NewPoints& found) {
  const auto recent = line.find("recent");
  const double rank = number_in(line, "worker");
  if (!(epoch_samples_ > 0) || !(rank >= 0) || recent == line.end() || !recent->is_object()) return;
  auto& worker = workers_[static_cast<std::int64_t>(rank)];
  const auto given = [&](const char* key) {
    const double value = number_in(line, key);
    return std::isfinite(value) ? value : 0;
  };
  worker = {given("samples"), given("compute_s") + given("exchange_s") + given("wait_s") + given("load_s")};
  double samples = 0, busy_s = 0;
  for (const auto& [other, sums] : workers_) {
    samples += sums.samples;
    busy_s = std::max(busy_s, sums.busy_s);
  }
  const double epoch = position_ + samples / epoch_samples_;
  add_point(found, "step.loss", epoch, seconds_ + busy_s, number_in(*recent, "loss"));
  add_point(found, "step.accuracy", epoch, seconds_ + busy_s, number_in(*recent, "accuracy"));
  add_point(found, "step.distance", epoch, seconds_ + busy_s, number_in(*recent, "distance"));
}

void MetricsReader::epoch(const Json& line, NewPoints& found) {
  const double epoch = number_in(line, "epoch"), seconds = number_in(line, "train_s");
  if (std::isfinite(seconds)) latest_ = seconds;
  if (std::isfinite(epoch)) so_far_["epochs"] = epoch;
  if (const double steps = number_in(line, "steps"); std::isfinite(steps))
    so_far_["steps"] = static_cast<std::int64_t>(steps);
  for (const char* group : {"train", "test"}) {
    const auto scores = line.find(group);
    if (scores == line.end() || !scores->is_object()) continue;
    so_far_[group] = *scores;
    for (const auto& [name, value] : scores->items())
      if (value.is_number()) add_point(found, std::string(group) + "." + name, epoch, seconds, value.get<double>());
  }
  add_point(found, "lr", epoch, seconds, number_in(line, "lr"));
}

void MetricsReader::evaluation(const Json& line, std::string_view monitor, NewPoints& found) {
  const auto split = text_in(line, "split");
  if (split != kValidation && split != "test") return;
  const double epoch = number_in(line, "epoch"), seconds = number_in(line, "train_s");
  constexpr double kRounding = 1e-9;
  if (std::isfinite(epoch)) so_far_["epochs"] = std::floor(epoch + kRounding);
  if (const double steps = number_in(line, "steps"); std::isfinite(steps))
    so_far_["steps"] = static_cast<std::int64_t>(steps);
  auto& scores = so_far_[split];
  if (!scores.is_object()) scores = nlohmann::ordered_json::object();  // none yet, or a damaged database
  for (const char* name : {"loss", "accuracy", "top5"}) {
    const double value = number_in(line, name);
    add_point(found, split + "." + name, epoch, seconds, value);
    scores[name] = finite_or_null(value);
  }
  if (split == kValidation) keep_best(line, monitor == "loss" ? "loss" : "accuracy");
}

/// As coordination::EvaluationWatch judges while the run trains.
void MetricsReader::keep_best(const Json& line, const char* monitor) {
  auto& best = so_far_[kValidation][kBest];
  if (!best.is_object()) best = nullptr;
  const double now = number_in(line, monitor), before = number_in(best, monitor);
  const bool is_loss = std::string_view(monitor) == "loss";
  const bool better = is_loss ? now < before : now > before;
  if (!better && !(std::isnan(before) && std::isfinite(now))) return;
  for (const char* name : {"loss", "accuracy", "epoch", "train_s"}) best[name] = finite_or_null(number_in(line, name));
}

void MetricsReader::ended(const Json& line) {
  const auto error = line.find("error");
  const bool failed = error != line.end() && error->is_object();
  outcome_ = failed ? text_in(*error, "code") : "done";
  if (outcome_.empty()) outcome_ = "failed";
  error_ = failed ? text_in(*error, "message") : std::string();
}

}  // namespace troupe::store
