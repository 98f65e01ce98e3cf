#include "experiment/report/tensorboard.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cmath>

#include <fmt/format.h>

#include "experiment/report/crc32c.hpp"
#include "experiment/report/tensorboard.pb.h"

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
  epoch_samples_ = static_cast<double>(run.epoch_samples);
  first_sample_ = run.epoch_position * epoch_samples_;
  workers_.assign(run.workers, {});
}

core::Result<void> TensorBoard::progress(const experiment::WorkerProgress& progress, double at_s) {
  if (progress.worker >= workers_.size()) return {};
  workers_[progress.worker] = {progress.samples, progress.wait_s, progress.staleness_sum, progress.staleness_count};
  recent_loss_ += progress.loss_sum;
  recent_top1_ += progress.top1;
  recent_samples_ += progress.recent_samples;
  const double seconds = at_s - told_at_s_;
  if (seconds < kEvery_s) return {};

  const auto now = total();
  const auto recent = static_cast<double>(recent_samples_);
  const auto per_worker = static_cast<double>(workers_.size());
  const auto updates = static_cast<double>(now.staleness_count - told_.staleness_count);
  Scalars values{{"progress/images_per_s", static_cast<double>(now.samples - told_.samples) / seconds},
                 {"progress/wait_share", (now.wait_s - told_.wait_s) / (seconds * per_worker)}};
  if (recent_samples_ > 0) {
    values.emplace_back("progress/loss", recent_loss_ / recent);
    values.emplace_back("progress/accuracy", static_cast<double>(recent_top1_) / recent);
  }
  if (updates > 0)
    values.emplace_back("progress/staleness", static_cast<double>(now.staleness_sum - told_.staleness_sum) / updates);
  told_ = now;
  told_at_s_ = at_s;
  recent_loss_ = 0;
  recent_top1_ = recent_samples_ = 0;
  return scalars(at_s, std::llround(first_sample_ + static_cast<double>(now.samples)), values);
}

core::Result<void> TensorBoard::epoch(const experiment::EpochReport& report, double at_s) {
  Scalars values{{"loss/train", report.train_loss},
                 {"loss/test", report.test_loss},
                 {"accuracy/train", report.train_accuracy},
                 {"accuracy/test", report.test_accuracy},
                 {"epoch/images_per_s", report.images_per_s},
                 {"epoch/learning_rate", report.lr},
                 {"epoch/train_s", report.train_s}};
  if (report.test_top5 >= 0) values.emplace_back("accuracy/test_top5", report.test_top5);
  return scalars(at_s, std::llround(report.epoch * epoch_samples_), values);
}

core::Result<void> TensorBoard::scalars(double at_s, std::int64_t step, const Scalars& values) {
  tensorboard::Event event;
  event.set_wall_time(began_s_ + at_s);
  event.set_step(step);
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

TensorBoard::Sums TensorBoard::total() const {
  Sums sum;
  for (const auto& worker : workers_) {
    sum.samples += worker.samples;
    sum.wait_s += worker.wait_s;
    sum.staleness_sum += worker.staleness_sum;
    sum.staleness_count += worker.staleness_count;
  }
  return sum;
}

}  // namespace troupe::report
