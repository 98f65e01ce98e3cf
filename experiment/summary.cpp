#include "experiment/summary.hpp"

#include <algorithm>
#include <ranges>
#include <string_view>

#include <nlohmann/json.hpp>

#include "strategies/host/accounts.hpp"

namespace troupe::experiment {
namespace {

using Json = nlohmann::ordered_json;

std::string one_line(const Json& json) { return json.dump(-1, ' ', false, Json::error_handler_t::replace); }

/// Below 0: unknown, or fewer than five classes.
Json top5(double value) { return value < 0 ? Json(nullptr) : Json(value); }
Json known(double value) { return top5(value); }

Json line(std::string_view kind, double at_s) { return {{"kind", kind}, {"t", at_s}}; }

/// A worker's sums; the same keys in summary.json and metrics.jsonl.
void add_sums(Json& json, const WorkerProgress& p) {
  json["worker"] = p.worker;
  json["steps"] = p.steps;
  json["samples"] = p.samples;
  json["compute_s"] = p.compute_s;
  json["forward_s"] = p.forward_s;
  json["backward_s"] = p.backward_s;
  json["optimizer_s"] = p.optimizer_s;
  json["exchange_s"] = p.exchange_s;
  json["wait_s"] = p.wait_s;
  json["load_s"] = p.load_s;
  json["exchanges"] = p.exchanges;
  json["bytes"] = p.bytes;
  json["dropped"] = p.dropped;
  json["skipped"] = p.skipped;
  json["refused"] = p.refused;
  json["staleness_mean"] = mean_staleness(p);
  json["staleness_max"] = p.staleness_max;
  json["passed"] = p.passed;
  json["replaced"] = p.replaced;
  json["gradient_norm_mean"] = p.steps > 0 ? Json(p.norm_sum / static_cast<double>(p.steps)) : Json(nullptr);
  json["gradient_norm_max"] = p.norm_max;
}

void add_traffic(Json& json, const WorkerProgress& p) {
  auto& traffic = json["traffic"] = Json::array();
  for (const auto& row : p.traffic)
    traffic.push_back(
        {name(row.purpose), row.purpose == Purpose::collective ? Json(nullptr) : Json(row.member), row.bytes});
}

/// The least, mean and greatest time of any worker.
Json spread(const std::vector<WorkerProgress>& workers, double WorkerProgress::*part) {
  if (workers.empty()) return nullptr;
  const auto [least, most] = std::ranges::minmax(workers | std::views::transform(part));
  if (most == 0) return nullptr;
  double sum = 0;
  for (const auto& worker : workers) sum += worker.*part;
  return {{"min", least}, {"mean", sum / static_cast<double>(workers.size())}, {"max", most}};
}

Json validation_of(const ValidationSummary& v) {
  if (!v.has) return nullptr;
  return {{"loss", known(v.loss)},
          {"accuracy", known(v.accuracy)},
          {"top5", top5(v.top5)},
          {"evaluations", v.evaluations},
          {"best",
           {{"loss", known(v.best_loss)},
            {"accuracy", known(v.best_accuracy)},
            {"epoch", known(v.best_epoch)},
            {"train_s", known(v.best_train_s)}}}};
}

/// What the summary says of the ledger; null: not known.
Json goodput_of(const LedgerReport& ledger) {
  const double share = goodput(ledger);
  if (share < 0) return nullptr;
  return {{"share", share},
          {"useful", ledger.useful},
          {"possible", ledger.possible},
          {"computed", ledger.computed},
          {"lost", ledger.lost},
          {"returned", ledger.returned},
          {"passed", ledger.passed},
          {"rolled_back", ledger.rolled_back}};
}

std::string_view name(MemberReport::Event event) {
  switch (event) {
    case MemberReport::Event::began: return "began";
    case MemberReport::Event::absent: return "absent";
    case MemberReport::Event::joined: return "joined";
    case MemberReport::Event::lost: return "lost";
    case MemberReport::Event::silent: return "silent";
    case MemberReport::Event::heard: return "heard";
  }
  return "lost";
}

std::string_view name(Note::Level level) {
  switch (level) {
    case Note::Level::info: return "info";
    case Note::Level::warning: return "warning";
    case Note::Level::error: return "error";
  }
  return "error";
}

}  // namespace

TimeShares average_time(const std::vector<WorkerProgress>& workers) {
  TimeShares mean;
  if (workers.empty()) return mean;
  const double share = 1.0 / static_cast<double>(workers.size());
  for (const auto& w : workers) {
    mean.compute_s += share * w.compute_s;
    mean.exchange_s += share * w.exchange_s;
    mean.wait_s += share * w.wait_s;
    mean.load_s += share * w.load_s;
  }
  return mean;
}

double mean_staleness(const WorkerProgress& p) noexcept {
  return p.staleness_count == 0 ? 0.0 : static_cast<double>(p.staleness_sum) / static_cast<double>(p.staleness_count);
}

std::string to_json(const Summary& s) {
  const TimeShares time = average_time(s.per_worker);
  Json json{{"run", s.run},
            {"strategy", s.strategy},
            {"model", s.model},
            {"dataset", s.dataset},
            {"device", s.device},
            {"precision", s.precision},
            {"workers", s.workers},
            {"servers", s.servers},
            {"epochs", s.epochs},
            {"steps", s.steps},
            {"samples", s.samples},
            {"wall_s", s.wall_s},
            {"train", {{"loss", s.train_loss}, {"images_per_s", s.images_per_s}}},
            {"test", {{"loss", s.test_loss}, {"accuracy", s.test_accuracy}, {"top5", top5(s.test_top5)}}},
            {"time",
             {{"compute_s", time.compute_s},
              {"exchange_s", time.exchange_s},
              {"wait_s", time.wait_s},
              {"load_s", time.load_s},
              {"forward_s", spread(s.per_worker, &WorkerProgress::forward_s)},
              {"backward_s", spread(s.per_worker, &WorkerProgress::backward_s)},
              {"optimizer_s", spread(s.per_worker, &WorkerProgress::optimizer_s)}}},
            {"exchange",
             {{"count", s.exchange_count},
              {"bytes", s.exchange_bytes},
              {"dropped", s.exchange_dropped},
              {"staleness_mean", s.staleness_mean},
              {"staleness_max", s.staleness_max},
              {"skipped", s.exchange_skipped},
              {"refused", s.refused}}},
            {"center_hash", s.center_hash}};
  json["waits"] = {{"workers", s.workers}, {"servers", s.servers}, {"seconds", Json::array()}};
  json["staleness"] = {{"edges", strategies::StalenessHistogram::kEdges}, {"workers", Json::array()}};
  for (const auto& worker : s.per_worker) {
    json["waits"]["seconds"].push_back(worker.waits);
    json["staleness"]["workers"].push_back(worker.staleness);
  }
  auto& workers = json["per_worker"] = Json::array();
  for (const auto& worker : s.per_worker) {
    auto& one = workers.emplace_back(Json::object());
    add_sums(one, worker);
    add_traffic(one, worker);
  }
  json["stopped_by"] = s.stopped_by.empty() ? Json(nullptr) : Json(s.stopped_by);
  json["validation"] = validation_of(s.validation);
  json["time_to_target_s"] = known(s.time_to_target_s);
  json["goodput"] = goodput_of(s.ledger);
  return one_line(json);
}

std::string to_json(const RunStarted& s, double at_s) {
  Json json = line("started", at_s);
  json.update(Json{{"name", s.name},
                   {"directory", s.directory},
                   {"strategy", s.strategy},
                   {"model", s.model},
                   {"dataset", s.dataset},
                   {"workers", s.workers},
                   {"servers", s.servers},
                   {"epochs", s.epochs},
                   {"parameters", s.parameters},
                   {"epoch_samples", s.epoch_samples},
                   {"epoch_position", s.epoch_position},
                   {"steps", s.steps},
                   {"samples", s.samples},
                   {"train_s", s.train_s},
                   {"batch", s.batch},
                   {"accumulate", s.accumulate},
                   {"slowdown", s.slowdown}});
  return one_line(json);
}

std::string to_json(const WorkerProgress& p, double at_s, bool tables) {
  Json json = line("worker", at_s);
  add_sums(json, p);
  if (tables) {
    add_traffic(json, p);
    json["waits"] = p.waits;
  }
  const auto recent = static_cast<double>(p.recent_samples);
  json["staleness"] = p.staleness;
  json["recent"] = {
      {"samples", p.recent_samples},
      {"loss", p.recent_samples > 0 ? Json(p.loss) : Json(nullptr)},
      {"accuracy", p.recent_samples > 0 && p.top1 >= 0 ? Json(static_cast<double>(p.top1) / recent) : Json(nullptr)},
      {"gradient_norm",
       p.recent_steps > 0 ? Json(p.recent_norm_sum / static_cast<double>(p.recent_steps)) : Json(nullptr)}};
  if (p.loss_scale != 1) json["recent"]["loss_scale"] = p.loss_scale;
  if (p.distance != kUnknown) json["recent"]["distance"] = p.distance;
  return one_line(json);
}

std::string to_json(const EpochReport& r, double at_s) {
  Json json = line("epoch", at_s);
  json.update(
      Json{{"epoch", r.epoch},
           {"epochs", r.epochs},
           {"steps", r.steps},
           {"train", {{"loss", r.train_loss}, {"accuracy", r.train_accuracy}, {"images_per_s", r.images_per_s}}},
           {"test", {{"loss", r.test_loss}, {"accuracy", r.test_accuracy}, {"top5", top5(r.test_top5)}}},
           {"lr", r.lr},
           {"train_s", r.train_s},
           {"samples", r.samples}});
  return one_line(json);
}

std::string to_json(const EvaluationReport& r, double at_s) {
  Json json = line("evaluation", at_s);
  json.update(Json{{"split", r.validation ? "validation" : "test"},
                   {"epoch", r.epoch},
                   {"steps", r.steps},
                   {"loss", r.loss},
                   {"accuracy", r.accuracy},
                   {"top5", top5(r.top5)},
                   {"lr", r.lr},
                   {"train_s", r.train_s},
                   {"samples", r.samples}});
  return one_line(json);
}

std::string to_json(const MemberReport& r, double at_s) {
  Json json = line("member", at_s);
  json.update(Json{{"event", name(r.event)},
                   {"worker", r.worker},
                   {"node", r.node.empty() ? Json(nullptr) : Json(r.node)},
                   {"reason", r.reason.empty() ? Json(nullptr) : Json(r.reason)},
                   {"steps", r.steps},
                   {"epoch", r.epoch},
                   {"train_s", r.train_s},
                   {"members", r.members}});
  return one_line(json);
}

std::string to_json(const LedgerReport& r, double at_s) {
  Json json = line("ledger", at_s);
  const double share = goodput(r);
  json.update(Json{{"epoch", r.epoch},
                   {"size", r.size},
                   {"done", r.done},
                   {"given_up", r.given_up},
                   {"leased", r.leased},
                   {"free", r.free},
                   {"omitted", r.omitted},
                   {"useful", r.useful},
                   {"computed", r.computed},
                   {"lost", r.lost},
                   {"returned", r.returned},
                   {"passed", r.passed},
                   {"rolled_back", r.rolled_back},
                   {"possible", r.possible},
                   {"goodput", share < 0 ? Json(nullptr) : Json(share)},
                   {"wall_s", r.wall_s}});
  return one_line(json);
}

std::string to_json(const Note& note, double at_s) {
  Json json = line("note", at_s);
  json.update(Json{{"level", name(note.level)}, {"text", note.text}});
  return one_line(json);
}

std::string to_json(const RunEnd& end, double at_s) {
  Json json = line("ended", at_s);
  json["error"] =
      end.failed ? Json{{"code", core::name(end.error.code)}, {"message", end.error.message}} : Json(nullptr);
  json.update(Json{{"steps", end.summary.steps}, {"samples", end.summary.samples}, {"wall_s", end.summary.wall_s}});
  json["stopped_by"] = end.summary.stopped_by.empty() ? Json(nullptr) : Json(end.summary.stopped_by);
  return one_line(json);
}

}  // namespace troupe::experiment
