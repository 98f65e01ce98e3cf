#include "experiment/report/tensorboard.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cmath>
#include <variant>

#include <fmt/format.h>

#include "experiment/report/crc32c.hpp"
#include "experiment/report/tensorboard.pb.h"
#include "experiment/settings.hpp"
#include "experiment/summary.hpp"

namespace troupe::report {
namespace {

template <class T>
void put(std::string& bytes, T value) {
  for (std::size_t i = 0; i < sizeof value; ++i) bytes += static_cast<char>(value >> (8 * i) & 0xFF);
}

/// A TFRecord: length, its checksum, the bytes, their checksum; little-endian.
std::string record(const std::string& bytes) {
  std::string framed;
  put(framed, std::uint64_t{bytes.size()});
  put(framed, masked_crc32c(framed));
  framed += bytes;
  put(framed, masked_crc32c(bytes));
  return framed;
}

std::string host_name() {
  std::array<char, 256> name{};
  return ::gethostname(name.data(), name.size() - 1) == 0 && name[0] != 0 ? name.data() : "localhost";
}

/// Returns 0, or the errno of the failed write.
int write_all(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const auto written = ::write(fd, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return errno;
    bytes.remove_prefix(static_cast<std::size_t>(written));
  }
  return 0;
}

/// Options that say where and how often files are written, not how the run trains.
bool is_about_files(std::string_view key) {
  static constexpr std::array kKeys{"run.name",
                                    "run.dir",
                                    "run.journal",
                                    "data.path",
                                    "run.tensorboard",
                                    "run.checkpoint_every",
                                    "run.keep_checkpoints"};
  return std::ranges::find(kKeys, key) != kKeys.end();
}

tensorboard::Option option_of(const core::Value& value) {
  tensorboard::Option option;
  if (const auto* boolean = std::get_if<bool>(&value))
    option.set_bool_value(*boolean);
  else if (const auto* whole = std::get_if<std::int64_t>(&value))
    option.set_number_value(static_cast<double>(*whole));
  else if (const auto* real = std::get_if<double>(&value))
    option.set_number_value(*real);
  else if (const auto* text = std::get_if<std::string>(&value))
    option.set_string_value(*text);
  else  // lists and layers
    option.set_string_value(core::to_toml(value));
  return option;
}

}  // namespace

core::Result<TensorBoard> TensorBoard::create(const std::string& run_directory, std::time_t now) {
  const auto base = fmt::format("{}/events.out.tfevents.{:010}.{}.{}", run_directory, now, host_name(), ::getpid());
  std::string path = base;
  int fd = -1;
  constexpr int kMostSuffixes = 1000;  // for files of one process in one second
  for (int suffix = 1; fd < 0; ++suffix) {
    fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
    if (fd < 0 && (errno != EEXIST || suffix == kMostSuffixes))
      return tl::unexpected(core::from_errno(errno, "create", path));
    if (fd < 0) path = fmt::format("{}.{}", base, suffix);
  }
  TensorBoard board(path, fd, static_cast<double>(now));
  tensorboard::Event event;
  event.set_wall_time(board.began_s_);
  event.set_file_version("brain.Event:2");
  if (auto written = board.append(event.SerializeAsString()); !written) return tl::unexpected(written.error());
  return board;
}

TensorBoard::TensorBoard(TensorBoard&& other) noexcept
    : path_(std::move(other.path_)), fd_(std::exchange(other.fd_, -1)), began_s_(other.began_s_), size_(other.size_) {}

TensorBoard& TensorBoard::operator=(TensorBoard&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(fd_, other.fd_);
  began_s_ = other.began_s_;
  size_ = other.size_;
  return *this;
}

TensorBoard::~TensorBoard() {
  if (fd_ >= 0) ::close(fd_);
}

void TensorBoard::started(const experiment::RunStarted& run) {
  samples_before_ = run.samples;
  workers_.assign(run.workers, {});
  told_ = workers_;
}

core::Result<void> TensorBoard::options(const core::Config& config) {
  tensorboard::HParamsPluginData data;
  auto& start = *data.mutable_session_start_info();
  start.set_start_time_secs(began_s_);
  for (const auto& key : experiment::keys_in_force(config))
    if (!is_about_files(key)) (*start.mutable_hparams())[key] = option_of(config.value(key));
  return hparams(0, "_hparams_/session_start_info", data.SerializeAsString());
}

core::Result<void> TensorBoard::progress(const experiment::WorkerProgress& progress, double at_s) {
  if (progress.worker >= workers_.size()) return {};
  const double busy_s = progress.compute_s + progress.exchange_s + progress.wait_s + progress.load_s;
  workers_[progress.worker] = {progress.samples, busy_s, progress.wait_s, progress.staleness_sum,
                               progress.staleness_count};
  recent_loss_ += progress.loss_sum;
  experiment::add_hits(progress.top1, recent_top1_);
  recent_samples_ += progress.recent_samples;
  recent_norm_ += progress.recent_norm_sum;
  recent_steps_ += progress.recent_steps;
  const double seconds = at_s - told_at_s_;
  if (seconds < kEvery_s) return {};

  const auto recent = static_cast<double>(recent_samples_);
  double images_per_s = 0, waited_s = 0, busy_total_s = 0;
  std::uint64_t staleness = 0, updates = 0;
  for (std::size_t w = 0; w < workers_.size(); ++w) {
    const auto &now = workers_[w], &before = told_[w];
    const double trained_s = now.busy_s - before.busy_s;
    if (trained_s > 0) images_per_s += static_cast<double>(now.samples - before.samples) / trained_s;
    waited_s += now.wait_s - before.wait_s;
    busy_total_s += trained_s;
    staleness += now.staleness_sum - before.staleness_sum;
    updates += now.staleness_count - before.staleness_count;
  }
  Scalars values;
  if (busy_total_s > 0) {
    values.emplace_back("progress/images_per_s", images_per_s);
    values.emplace_back("progress/wait_share", waited_s / busy_total_s);
  }
  if (recent_samples_ > 0) {
    values.emplace_back("progress/loss", recent_loss_ / recent);
    if (recent_top1_ >= 0) values.emplace_back("progress/accuracy", static_cast<double>(recent_top1_) / recent);
  }
  if (recent_steps_ > 0)
    values.emplace_back("progress/gradient_norm", recent_norm_ / static_cast<double>(recent_steps_));
  if (updates > 0)
    values.emplace_back("progress/staleness", static_cast<double>(staleness) / static_cast<double>(updates));
  if (values.empty()) return {};  // all wait: what comes next spans the wait
  told_ = workers_;
  told_at_s_ = at_s;
  recent_loss_ = 0;
  recent_top1_ = 0;
  recent_samples_ = recent_steps_ = 0;
  recent_norm_ = 0;
  return scalars(at_s, samples(), values);
}

void TensorBoard::add_accuracy(Scalars& values, const std::string& split, double accuracy) {
  if (!std::isnan(accuracy)) values.emplace_back("accuracy/" + split, accuracy);
}

core::Result<void> TensorBoard::epoch(const experiment::EpochReport& report, double at_s) {
  Scalars values{{"loss/train", report.train_loss},
                 {"loss/test", report.test_loss},
                 {"epoch/images_per_s", report.images_per_s},
                 {"epoch/learning_rate", report.lr},
                 {"epoch/train_s", report.train_s}};
  add_accuracy(values, "train", report.train_accuracy);
  add_accuracy(values, "test", report.test_accuracy);
  if (report.test_top5 >= 0) values.emplace_back("accuracy/test_top5", report.test_top5);
  return scalars(at_s, report.samples, values);
}

core::Result<void> TensorBoard::evaluation(const experiment::EvaluationReport& report, double at_s) {
  const std::string split = report.validation ? "validation" : "test";
  Scalars values{{"loss/" + split, report.loss}, {"evaluation/learning_rate", report.lr}};
  add_accuracy(values, split, report.accuracy);
  if (report.top5 >= 0) values.emplace_back("accuracy/" + split + "_top5", report.top5);
  return scalars(at_s, report.samples, values);
}

core::Result<void> TensorBoard::ended(const experiment::RunEnd& end, double at_s) {
  const auto& summary = end.summary;
  const auto time = experiment::average_time(summary.per_worker);
  const double busy_s = time.total_s();
  Scalars results{{"final/test_accuracy", summary.test_accuracy},
                  {"final/test_loss", summary.test_loss},
                  {"final/train_loss", summary.train_loss},
                  {"final/images_per_s", summary.images_per_s},
                  {"final/wait_share", busy_s > 0 ? time.wait_s / busy_s : 0},
                  {"final/staleness", summary.staleness_mean},
                  {"final/wall_s", summary.wall_s}};
  std::erase_if(results, [](const auto& result) { return !std::isfinite(result.second); });  // not evaluated yet
  if (auto written = scalars(at_s, samples(), results); !written) return written;
  const bool diverged = end.failed && end.error.code == core::Errc::diverged;
  if (end.failed && !diverged) return {};
  tensorboard::HParamsPluginData data;
  auto& session = *data.mutable_session_end_info();
  session.set_status(diverged ? tensorboard::STATUS_FAILURE : tensorboard::STATUS_SUCCESS);
  session.set_end_time_secs(began_s_ + at_s);
  return hparams(at_s, "_hparams_/session_end_info", data.SerializeAsString());
}

core::Result<void> TensorBoard::hparams(double at_s, const std::string& tag, const std::string& content) {
  tensorboard::Event event;
  event.set_wall_time(began_s_ + at_s);
  auto* value = event.mutable_summary()->add_value();
  value->set_tag(tag);
  auto* plugin = value->mutable_metadata()->mutable_plugin_data();
  plugin->set_plugin_name("hparams");
  plugin->set_content(content);
  return append(event.SerializeAsString());
}

core::Result<void> TensorBoard::scalars(double at_s, std::uint64_t step, const Scalars& values) {
  tensorboard::Event event;
  event.set_wall_time(began_s_ + at_s);
  event.set_step(static_cast<std::int64_t>(step));
  for (const auto& [tag, number] : values) {
    auto* value = event.mutable_summary()->add_value();
    value->set_tag(tag);
    value->set_simple_value(static_cast<float>(number));
  }
  return append(event.SerializeAsString());
}

core::Result<void> TensorBoard::append(const std::string& event) {
  const auto bytes = record(event);
  const int error = write_all(fd_, bytes);
  if (error == 0) {
    size_ += static_cast<std::int64_t>(bytes.size());
    failing_ = false;
    return {};
  }
  // Removes the written part of the record, so that the next record begins where readers expect it.
  if (::ftruncate(fd_, size_) == 0) ::lseek(fd_, size_, SEEK_SET);
  if (std::exchange(failing_, true)) return {};
  return tl::unexpected(core::from_errno(error, "write", path_));
}

std::uint64_t TensorBoard::samples() const {
  auto sum = samples_before_;
  for (const auto& worker : workers_) sum += worker.samples;
  return sum;
}

}  // namespace troupe::report
