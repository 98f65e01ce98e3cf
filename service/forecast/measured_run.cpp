#include "service/forecast/measured_run.hpp"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <limits>
#include <map>

#include <fmt/format.h>

#include "core/file_descriptor.hpp"
#include "service/live/followed_file.hpp"
#include "service/live/metrics_line.hpp"
#include "store/run_directory.hpp"

namespace troupe::service {
namespace {

using Line = nlohmann::ordered_json;

/// Not below 0; 0 for what is missing or beyond reason.
double amount_in(const Line& line, const char* key) {
  constexpr double kMostAmount = 1e15;
  const auto found = line.find(key);
  if (found == line.end() || !found->is_number()) return 0;
  const auto amount = found->get<double>();
  return amount >= 0 && amount <= kMostAmount ? amount : 0;
}

std::string word_in(const Line& line, const char* key) {
  const auto found = line.find(key);
  return found != line.end() && found->is_string() ? found->get<std::string>() : std::string();
}

class Measuring {
 public:
  void read(std::string_view text) {
    const auto line = metrics_line(text);
    if (!line.is_object()) return;
    const auto kind = word_in(line, "kind");
    if (kind == "started") started(line);
    if (kind == "worker") worker(line);
    if (kind == "epoch") epoch(line);
  }

  [[nodiscard]] MeasuredRun result() const {
    auto run = run_;
    const double begun = std::isfinite(begun_s_) ? begun_s_ : 0;
    for (const auto& [rank, worker] : workers_) {
      run.exchange_bytes += worker.bytes;
      run.exchange_s += worker.exchange_s;
    }
    for (auto moment : moments_.all()) {
      moment.t = std::max(moment.t - begun, 0.0);
      run.moments.add(moment);
    }
    if (evaluations_ > 0)
      run.evaluation_s = std::max((evaluated_at_ - begun - (trained_s_ - trained_before_s_)) / evaluations_, 0.0);
    return run;
  }
  [[nodiscard]] bool has_begun() const noexcept { return !run_.model.empty(); }

 private:
  struct Sums {
    double samples = 0, steps = 0, bytes = 0, exchange_s = 0;
  };

  void started(const Line& line) {
    run_ = {};
    run_.model = word_in(line, "model");
    run_.parameters = static_cast<std::uint64_t>(amount_in(line, "parameters"));
    run_.epoch_samples = static_cast<std::uint64_t>(amount_in(line, "epoch_samples"));
    run_.epochs = amount_in(line, "epochs");
    run_.begun_at = amount_in(line, "epoch_position");
    moments_ = {};
    workers_.clear();
    all_ = {};
    begun_s_ = std::numeric_limits<double>::infinity();
    trained_before_s_ = trained_s_;
    evaluations_ = 0;
  }

  /// The session begins when its first worker does: before, data and models are loaded.
  void worker(const Line& line) {
    const double t = amount_in(line, "t");
    const auto rank = static_cast<std::int64_t>(amount_in(line, "worker"));
    const Sums now{amount_in(line, "samples"), amount_in(line, "steps"), amount_in(line, "bytes"),
                   amount_in(line, "exchange_s")};
    if (!workers_.contains(rank)) {
      double busy = 0;
      for (const auto* key : {"compute_s", "exchange_s", "wait_s", "load_s"}) busy += amount_in(line, key);
      begun_s_ = std::min(begun_s_, std::max(t - busy, 0.0));
    }
    auto& before = workers_[rank];
    all_.samples += std::max(now.samples - before.samples, 0.0);
    all_.steps += std::max(now.steps - before.steps, 0.0);
    before = now;
    moments_.add({t, all_.samples, all_.steps});
  }

  void epoch(const Line& line) {
    trained_s_ = amount_in(line, "train_s");
    evaluated_at_ = amount_in(line, "t");
    ++evaluations_;
  }

  MeasuredRun run_;
  Moments moments_;
  std::map<std::int64_t, Sums> workers_;  // by rank, in this session
  Sums all_;
  double begun_s_ = std::numeric_limits<double>::infinity();
  double trained_s_ = 0, trained_before_s_ = 0;  // at the last epoch's end; before this session
  double evaluated_at_ = 0, evaluations_ = 0;
};

}  // namespace

core::Result<MeasuredRun> measure_run(const std::string& directory, const std::string& run,
                                      const std::stop_token& stop) {
  const auto opened = store::open_run_directory(directory, run);
  if (!opened) return tl::unexpected(opened.error());
  core::FileDescriptor file(
      ::openat(opened->run.get(), "metrics.jsonl", O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  struct stat status {};
  if (!file || ::fstat(file.get(), &status) != 0 || !S_ISREG(status.st_mode))
    return core::fail(core::Errc::data, run + " has no metrics.jsonl yet");
  if (static_cast<std::uint64_t>(status.st_size) > kLongestMetrics)
    return core::fail(core::Errc::data, fmt::format("{}: metrics.jsonl has {} bytes, more than the {} that a forecast "
                                                    "reads: use `troupe simulate --from`",
                                                    run, status.st_size, kLongestMetrics));
  Measuring measuring;
  FollowedFile lines(std::move(file));
  for (bool more = true; more;) {
    if (stop.stop_requested()) return core::fail(core::Errc::interrupted, "interrupted");
    const auto read = lines.read([&](std::string_view line, std::uint64_t) { measuring.read(line); });
    if (!read) return tl::unexpected(read.error());
    more = *read && lines.position() <= kLongestMetrics;
  }
  auto measured = measuring.result();
  measured.position = lines.position();
  if (!measuring.has_begun()) return core::fail(core::Errc::data, run + " has not begun to train yet");
  if (measured.moments.empty()) return core::fail(core::Errc::data, run + ": no worker has reported a step yet");
  return measured;
}

}  // namespace troupe::service
