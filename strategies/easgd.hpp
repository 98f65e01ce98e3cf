/// Elastic averaging SGD (Zhang, Choromanska, LeCun 2015, eq. 4): every τ local steps a worker and the centre move towards each
/// other,
///     d = x − c;   x ← x − α_w d;   c ← c + α_s d        (x and c from before the exchange)
/// by one atomic read-modify-write per shard; the order between shards is free.
///
/// Without overlap the worker waits and lends its parameters: one pass over both vectors, in place. With overlap it sends a copy,
/// continues, and subtracts α_w d at the end of a later step. An exchange that is due while another is in flight is skipped and
/// counted (overlap = "skip") or begins after that one (overlap = "wait").
///
/// Messages: one request and one reply per shard every τ steps. Bytes per exchange and worker for P parameters: 2 · 4P on a wire;
/// 4P + 2P on a 16-bit wire, which carries x exactly and rounds only α_w d. Staleness: unbounded. A lost member needs no action:
/// its contributions stay in the centre.
#pragma once

#include "strategies/strategy.hpp"

namespace troupe::strategies {

struct EasgdConfig {
  double alpha = 0.5;
  double alpha_worker = -1;
  double alpha_server = -1;
  double beta = 0;
  std::vector<double> alpha_schedule;
  std::int64_t tau = 10;
  std::string overlap = "off";
};

/// Moving rates by epoch: the schedule's last entry holds for all later epochs. The server rules apply both rates.
struct ElasticRates {
  double alpha_worker = 0.5;
  double alpha_server = 0.5;
  std::vector<double> schedule;  // of both rates; empty: constant
  struct Pair {
    float worker;
    float server;
  };
  [[nodiscard]] Pair at(double epoch) const noexcept;
};

enum class Overlap : std::uint8_t { off, skip, wait };

/// The meaning of params while a worker computes: x itself, or x + μ v with Nesterov's local steps (EAMSGD, eamsgd.hpp).
enum class Gradient : std::uint8_t { at_x, at_lookahead };

class EasgdWorker final : public WorkerRule {
 public:
  EasgdWorker(Step tau, Overlap overlap, Gradient gradient = Gradient::at_x) noexcept
      : tau_(tau), overlap_(overlap), gradient_(gradient) {}
  void on(const StepDone& event, const WorkerContext& context, WorkerActions& then) override;
  void on(const ExchangeDone& event, const WorkerContext& context, WorkerActions& then) override;

 private:
  void send_copy(Step step, WorkerActions& then);

  Step tau_;
  Overlap overlap_;
  Gradient gradient_;
  float momentum_ = 0;  // of the latest local step
  bool in_flight_ = false;
  bool waiting_ = false;  // overlap = wait: an exchange is due and the one before is still in flight
  Step due_ = 0;
};

class EasgdServer final : public ServerRule {
 public:
  EasgdServer(ElasticRates rates, Overlap overlap) : rates_(std::move(rates)), overlap_(overlap) {}
  void on(const Request& request, const ServerContext& context, ServerActions& then) override;
  void refused(const Request& request, const ServerContext& context, ServerActions& then) override;

 private:
  ElasticRates rates_;
  Overlap overlap_;
};

/// The options of the section with other defaults, and the strategy for them.
[[nodiscard]] core::Table<EasgdConfig> easgd_table(const EasgdConfig& defaults);
[[nodiscard]] core::Result<std::unique_ptr<Strategy>> make_easgd(const core::Config& config, const EasgdConfig& options,
                                                                 const RunShape& shape, Gradient gradient);
/// The options that say when workers exchange; with `easgd_space` also how far they move.
[[nodiscard]] OptionSpace easgd_timing();
[[nodiscard]] OptionSpace easgd_space(const RunShape& shape);
[[nodiscard]] Properties easgd_properties(const EasgdConfig& options, const RunShape& shape);
[[nodiscard]] std::vector<std::string> easgd_replayable_options();  // StrategyInfo::replayable_options

[[nodiscard]] StrategyInfo easgd();

}  // namespace troupe::strategies
