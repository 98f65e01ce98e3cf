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
  const auto position = json.value("position", Json::object());
  epochs_done_ = {.begun = position.value("begun", 0.0),
                  .epoch_samples = position.value("epoch_samples", 0.0),
                  .epochs = position.value("epochs", 0.0),
                  .known = {position.value("known", 0.0), position.value("computed", 0.0)}};
  reached_ = json.value("reached", 0.0);
  samples_before_ = json.value("samples_before", 0.0);
  seconds_ = json.value("seconds", 0.0);
  for (const auto& mark : json.value("marks", Json::array()))
    marks_.push_back({mark.at(0).get<double>(), mark.at(1).get<double>()});
  for (const auto& row : json.value("workers", Json::array()))
    workers_[row.at(0).get<std::int64_t>()] = {row.at(1).get<double>(), row.at(2).get<double>()};
  const auto so_far = json.value("so_far", nlohmann::ordered_json::object());
  if (so_far.is_object()) so_far_ = so_far;
}

std::string MetricsReader::state() const {
  auto workers = Json::array();
  if (outcome_.empty())  // a run that goes on after an end begins a session
    for (const auto& [rank, worker] : workers_) workers.push_back({rank, worker.samples, worker.busy_s});
  auto marks = Json::array();
  for (const auto& mark : marks_) marks.push_back({mark.epoch, mark.seconds});
  const auto& position = epochs_done_;
  return Json{{"sessions", sessions_},
              {"bad_lines", bad_lines_},
              {"outcome", outcome_},
              {"error", error_},
              {"position",
               {{"begun", position.begun},
                {"epoch_samples", position.epoch_samples},
                {"epochs", position.epochs},
                {"known", position.known.epochs},
                {"computed", position.known.computed}}},
              {"reached", reached_},
              {"samples_before", samples_before_},
              {"seconds", seconds_},
              {"marks", marks},
              {"workers", workers},
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
  if (kind == "ledger") ledger(line);
  if (kind == "ended") ended(line);
}

void MetricsReader::started(const Json& line, NewPoints& found) {
  ++sessions_;
  outcome_.clear();
  error_.clear();
  workers_.clear();
  double position = epochs_done_.begun, epoch_samples = epochs_done_.epoch_samples;
  if (const double samples = number_in(line, "epoch_samples"); samples > 0) epoch_samples = samples;
  if (const double given = number_in(line, "epoch_position"); std::isfinite(given)) {
    constexpr double kSame = 1e-9;
    position = given;
    found.kept = std::min(found.kept, position + kSame);
    std::erase_if(found.points, [&](const Point& point) { return point.epoch > position + kSame; });
    if (auto split = so_far_.find(kValidation); split != so_far_.end() && split->contains(kBest))
      if (number_in((*split)[kBest], "epoch") > position + kSame) split->erase(kBest);
    std::erase_if(marks_, [&](const Mark& mark) { return mark.epoch > position + kSame; });
  }
  const double epochs = number_in(line, "epochs"), samples = number_in(line, "samples");
  epochs_done_.start(position, epoch_samples, epochs > 0 ? epochs : 0);
  reached_ = position;
  samples_before_ = std::isfinite(samples) ? samples : 0;
  seconds_ = 0;
  for (const auto& mark : marks_) seconds_ = std::max(seconds_, mark.seconds);
  if (const double trained_s = number_in(line, "train_s"); std::isfinite(trained_s)) seconds_ = trained_s;
  for (const char* key : {"strategy", "model", "dataset", "workers", "servers"})
    if (const auto value = line.find(key); value != line.end() && value->is_primitive()) so_far_[key] = *value;
}

void MetricsReader::worker(const Json& line, NewPoints& found) {
  const auto recent = line.find("recent");
  const double rank = number_in(line, "worker");
  if (!(epochs_done_.epoch_samples > 0) || !(rank >= 0) || recent == line.end() || !recent->is_object()) return;
  auto& worker = workers_[static_cast<std::int64_t>(rank)];
  const auto given = [&](const char* key) {
    const double value = number_in(line, key);
    return std::isfinite(value) ? value : 0;
  };
  worker = {given("samples"), given("compute_s") + given("exchange_s") + given("wait_s") + given("load_s")};
  double busy_s = 0;
  for (const auto& [other, sums] : workers_) busy_s = std::max(busy_s, sums.busy_s);
  // The ledger may correct it by a little: a curve does not go back for that.
  reached_ = std::max(reached_, epochs_done_.after(computed()));
  const double seconds = seconds_ + busy_s;
  add_point(found, "step.loss", reached_, seconds, number_in(*recent, "loss"));
  add_point(found, "step.accuracy", reached_, seconds, number_in(*recent, "accuracy"));
  add_point(found, "step.distance", reached_, seconds, number_in(*recent, "distance"));
  constexpr double kApart = 0.01;  // epochs
  if (marks_.empty() || reached_ > marks_.back().epoch + kApart) mark(reached_, seconds);
}

double MetricsReader::computed() const {
  double samples = 0;
  for (const auto& [rank, sums] : workers_) samples += sums.samples;
  return samples;
}

void MetricsReader::ledger(const Json& line) {
  const auto epochs =
      experiment::ledger_position(number_in(line, "epoch"), number_in(line, "size"), number_in(line, "omitted"),
                                  number_in(line, "done") + number_in(line, "given_up"));
  if (epochs) epochs_done_.learn(*epochs, computed());
}

/// What a line of an evaluation tells of where the run is.
void MetricsReader::evaluated(const Json& line) {
  const double epoch = number_in(line, "epoch"), seconds = number_in(line, "train_s");
  if (!std::isfinite(epoch)) return;
  if (std::isfinite(seconds)) mark(epoch, seconds);
  if (const double samples = number_in(line, "samples"); samples > samples_before_)
    epochs_done_.learn(epoch, samples - samples_before_);
}

void MetricsReader::mark(double epoch, double seconds) {
  constexpr std::size_t kMost = 100;
  marks_.push_back({epoch, seconds});
  if (marks_.size() > kMost) marks_.pop_front();
}

void MetricsReader::epoch(const Json& line, NewPoints& found) {
  const double epoch = number_in(line, "epoch"), seconds = number_in(line, "train_s");
  evaluated(line);
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
  evaluated(line);
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
