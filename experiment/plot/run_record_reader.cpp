#include "experiment/plot/run_record_reader.hpp"

#include <algorithm>
#include <cmath>

namespace troupe::plot {
namespace {

double number_in(const nlohmann::json& json, const char* key) {
  const auto found = json.find(key);
  return found != json.end() && found->is_number() ? found->get<double>() : std::numeric_limits<double>::quiet_NaN();
}

double number_in(const nlohmann::json& json, const char* group, const char* key) {
  const auto found = json.find(group);
  return found != json.end() && found->is_object() ? number_in(*found, key) : std::numeric_limits<double>::quiet_NaN();
}

}  // namespace

void RunRecordReader::read(const nlohmann::json& line) {
  const auto kind = line.value("kind", "");
  if (kind == "started") started(line);
  if (kind == "worker") worker(line);
  if (kind == "epoch") epoch(line);
  if (kind == "evaluation") evaluation(line);
  if (kind == "ledger") ledger(line);
  if (kind == "ended") ended(line);
}

void RunRecordReader::end() {
  place_since_anchor(1);
  for (const auto& [point, computed] : open_) run_.training[point].epoch = position_.after(computed);
  open_.clear();
}

/// A process begins or continues the run. Training after its checkpoint is done again.
void RunRecordReader::started(const nlohmann::json& line) {
  run_.strategy = line.value("strategy", run_.strategy);
  run_.outcome.clear();
  end();
  const double position = number_in(line, "epoch_position");
  knows_position_ = std::isfinite(position);
  if (knows_position_) {
    constexpr double kSame = 1e-9;
    const auto later = [&](const auto& old) { return old.epoch > position + kSame; };
    std::erase_if(run_.epochs, later);
    std::erase_if(run_.training, later);
    std::erase_if(run_.validation, later);
    std::erase_if(run_.test, later);
    before_ = 0;
  }
  position_.start(knows_position_ ? position : 0, number_in(line, "epoch_samples"), number_in(line, "epochs"));
  if (position_.epoch_samples > 0) run_.epoch_samples = position_.epoch_samples;
  samples_before_ = number_in(line, "samples");
  has_ledger_ = false;
  workers_.clear();
  begin_seconds(number_in(line, "train_s"));
}

void RunRecordReader::worker(const nlohmann::json& line) {
  const auto recent = line.find("recent");
  if (!(position_.epoch_samples > 0) || recent == line.end() || !recent->is_object()) return;
  const double rank = number_in(line, "worker");
  if (!(rank >= 0)) return;
  auto& worker = workers_[static_cast<std::size_t>(rank)];
  worker.samples = number_in(line, "samples");
  worker.busy_s = number_in(line, "compute_s") + number_in(line, "exchange_s") + number_in(line, "wait_s") +
                  number_in(line, "load_s");
  TrainPoint point;
  point.samples = number_in(*recent, "samples");
  if (!(point.samples > 0)) return;
  point.seconds = busy_s();
  point.loss = number_in(*recent, "loss");
  point.accuracy = number_in(*recent, "accuracy");
  if (!std::isfinite(computed()) || !std::isfinite(point.seconds)) return;
  open_.push_back({run_.training.size(), computed()});
  run_.training.push_back(point);
}

void RunRecordReader::epoch(const nlohmann::json& line) {
  EpochPoint point;
  point.epoch = number_in(line, "epoch");
  // A process that does not say where it began may begin before epochs that were already evaluated, and may continue or restart its time.
  std::erase_if(run_.epochs, [&](const EpochPoint& old) { return old.epoch >= point.epoch; });
  const double train_s = number_in(line, "train_s");
  if (!knows_position_ && before_ + train_s < latest_) before_ = run_.epochs.empty() ? 0 : run_.epochs.back().seconds;
  point.seconds = latest_ = before_ + train_s;
  point.train_loss = number_in(line, "train", "loss");
  point.train_accuracy = number_in(line, "train", "accuracy");
  point.test_loss = number_in(line, "test", "loss");
  point.test_accuracy = number_in(line, "test", "accuracy");
  run_.epochs.push_back(point);
  if (const double samples = number_in(line, "samples") - samples_before_; std::isfinite(samples))
    learn(point.epoch, samples);
  else if (!has_ledger_)
    end_epoch(point.epoch);
  const double counted = busy_s() - anchor_.busy_s;
  place_since_anchor(counted > 0 ? std::max(0.0, point.seconds - anchor_.seconds) / counted : 0);
  anchor_ = {run_.training.size(), point.seconds, busy_s()};
}

/// Programs that write such lines count train_s over the run's whole life.
void RunRecordReader::evaluation(const nlohmann::json& line) {
  const ScorePoint point{number_in(line, "epoch"), number_in(line, "train_s"), number_in(line, "loss"),
                         number_in(line, "accuracy")};
  if (!std::isfinite(point.epoch) || !std::isfinite(point.seconds)) return;
  if (const double samples = number_in(line, "samples") - samples_before_; std::isfinite(samples))
    learn(point.epoch, samples);
  (line.value("split", "") == "validation" ? run_.validation : run_.test).push_back(point);
}

void RunRecordReader::ledger(const nlohmann::json& line) {
  const auto position =
      experiment::ledger_position(number_in(line, "epoch"), number_in(line, "size"), number_in(line, "omitted"),
                                  number_in(line, "done") + number_in(line, "given_up"));
  if (!position) return;
  has_ledger_ = true;
  learn(*position, computed());
}

void RunRecordReader::ended(const nlohmann::json& line) {
  const auto error = line.find("error");
  run_.outcome = error != line.end() && error->is_object() ? error->value("code", "failed") : "done";
}

double RunRecordReader::computed() const {
  double samples = 0;
  for (const auto& [rank, worker] : workers_) samples += worker.samples;
  return samples;
}

/// The run is at `epochs` when so many samples are computed: the points up to there lie evenly on the way.
void RunRecordReader::learn(double epochs, double computed) {
  const auto from = position_.known;
  position_.learn(epochs, computed);
  const auto to = position_.known;
  const double way = to.computed - from.computed;
  const double pace = way > 0 ? (to.epochs - from.epochs) / way : 0;
  place_until(to.computed, [&](double at) { return from.epochs + std::max(at - from.computed, 0.0) * pace; });
}

template <class Place>
void RunRecordReader::place_until(double computed, const Place& place) {
  while (!open_.empty() && open_.front().computed <= computed) {
    run_.training[open_.front().point].epoch = place(open_.front().computed);
    open_.pop_front();
  }
}

/// Of a file without a ledger. The last batches of an epoch may repeat samples, so workers count a little more than an epoch: the next one
/// begins at its own number.
void RunRecordReader::end_epoch(double epoch) {
  constexpr double kLittle = 0.25;  // more is no repetition: the evaluation of a run that stopped within an epoch
  const double more = position_.after(computed()) - epoch;
  if (!(more > 0 && more < kLittle)) return;
  place_until(computed(), [&](double at) { return std::min(position_.after(at), epoch); });
  position_.begun = epoch;  // at the pace of an epoch's samples
  position_.known = {epoch, computed()};
}

double RunRecordReader::busy_s() const {
  double most = 0;
  for (const auto& [rank, worker] : workers_) most = std::max(most, worker.busy_s);
  return most;
}

/// `train_s`: of the sessions before, as the line says; not a number: as far as their points tell.
void RunRecordReader::begin_seconds(double train_s) {
  if (std::isfinite(train_s))
    for (auto k = anchor_.first; k < run_.training.size(); ++k)
      run_.training[k].seconds = std::min(run_.training[k].seconds, train_s);
  const double latest = run_.training.empty() ? 0 : run_.training.back().seconds;
  anchor_ = {run_.training.size(), std::isfinite(train_s) ? train_s : latest, 0};
  latest_ = run_.epochs.empty() ? 0 : run_.epochs.back().seconds;
}

void RunRecordReader::place_since_anchor(double factor) {
  for (auto k = anchor_.first; k < run_.training.size(); ++k) {
    auto& seconds = run_.training[k].seconds;
    seconds = anchor_.seconds + std::max(0.0, seconds - anchor_.busy_s) * factor;
  }
}

}  // namespace troupe::plot
