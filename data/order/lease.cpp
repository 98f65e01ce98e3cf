#include "data/order/lease.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <stdexcept>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace troupe::data {
namespace {

constexpr int kStateVersion = 1;

/// As saved with checkpoints.
const char* name(Sharing sharing) { return sharing == Sharing::equal ? "shares" : "on_demand"; }

std::int64_t divide_up(std::int64_t count, std::int64_t by) { return (count + by - 1) / by; }

core::Result<void> check(const LeaseOptions& options) {
  using core::Errc;
  const auto& batches = options.batches;
  if (options.epoch_size < 1)
    return core::fail(Errc::config, fmt::format("an epoch of {} samples cannot be divided: the data set is empty",
                                                options.epoch_size));
  if (batches.empty())
    return core::fail(Errc::config, "no workers to divide an epoch among: cluster.workers must be at least 1");
  for (std::size_t worker = 0; worker < batches.size(); ++worker)
    if (batches[worker] < 1)
      return core::fail(Errc::config,
                        fmt::format("data.batch of worker {} is {}: it must be at least 1", worker, batches[worker]));

  std::int64_t unit = *std::max_element(batches.begin(), batches.end());
  if (options.sharing == Sharing::equal) {
    for (std::size_t worker = 1; worker < batches.size(); ++worker)
      if (batches[worker] != batches[0])
        return core::fail(Errc::config, fmt::format("data.batch of worker {} is {} and of worker 0 {}: a strategy "
                                                    "whose workers go in step needs equal batches",
                                                    worker, batches[worker], batches[0]));
    unit = batches[0] * static_cast<std::int64_t>(batches.size());
  }
  if (options.drop_tail && unit > options.epoch_size)
    return core::fail(
        Errc::config,
        fmt::format("data.drop_tail leaves nothing: {} samples do not fill one batch of {}; lower data.batch or "
                    "set data.drop_tail = false",
                    options.epoch_size, unit));
  return {};
}

}  // namespace

core::Result<LeaseScheduler> LeaseScheduler::create(const LeaseOptions& options) {
  if (auto ok = check(options); !ok) return tl::unexpected(ok.error());
  return LeaseScheduler(options);
}

LeaseScheduler::LeaseScheduler(LeaseOptions options)
    : options_(std::move(options)), alive_(options_.batches.size(), true) {
  open_epoch();
}

void LeaseScheduler::open_epoch() {
  free_.clear();
  done_positions_ = given_up_ = 0;
  if (epoch_ >= options_.epochs) return;
  free_[0] = options_.epoch_size;
  drop_unfillable_tail();
  mark_epoch();
}

void LeaseScheduler::mark_epoch() {
  const auto position = free_.empty() ? options_.epoch_size : free_.begin()->first;
  mark_ = {next_index_, position, done_positions_, done_count_};
}

std::vector<std::uint32_t> LeaseScheduler::live_workers() const {
  std::vector<std::uint32_t> live;
  for (std::uint32_t worker = 0; worker < alive_.size(); ++worker)
    if (alive_[worker]) live.push_back(worker);
  return live;
}

/// Puts positions back, merged with their neighbours so that equal batches cut them as before.
void LeaseScheduler::release(std::int64_t first, std::int64_t count) {
  auto after = free_.lower_bound(first);
  if (after != free_.end() && after->first == first + count) {
    count += after->second;
    after = free_.erase(after);
  }
  if (after != free_.begin())
    if (auto before = std::prev(after); before->first + before->second == first) {
      before->second += count;
      return;
    }
  free_.emplace_hint(after, first, count);
}

/// With drop_tail, a tail that no live worker can fill is not part of the epoch.
void LeaseScheduler::drop_unfillable_tail() {
  if (!options_.drop_tail || free_.empty()) return;
  const auto live = live_workers();
  if (live.empty()) return;  // the next worker that joins decides
  std::int64_t unit = options_.batches[live.front()];
  if (options_.sharing == Sharing::equal)
    unit *= static_cast<std::int64_t>(live.size());
  else
    for (const auto worker : live) unit = std::min(unit, options_.batches[worker]);
  const auto tail = std::prev(free_.end());
  if (tail->first + tail->second == options_.epoch_size && tail->second < unit) free_.erase(tail);
}

Lease LeaseScheduler::hand_out(std::uint32_t worker, std::uint64_t index, std::int64_t first, std::int64_t covers,
                               std::int64_t round_begin) {
  const double position = epoch_ + static_cast<double>(round_begin) / static_cast<double>(options_.epoch_size);
  const Lease lease{index, epoch_, first % options_.epoch_size, options_.batches[worker], position, lr_factor_};
  outstanding_.emplace(index, Outstanding{lease, worker, covers});
  return lease;
}

std::optional<Lease> LeaseScheduler::grant(std::uint32_t worker) {
  if (worker >= alive_.size()) throw std::out_of_range(fmt::format("worker {} of {}", worker, alive_.size()));
  if (!alive_[worker]) return std::nullopt;
  return options_.sharing == Sharing::equal ? grant_share(worker) : grant_on_demand(worker);
}

bool LeaseScheduler::may_begin_round() const { return !paused_ && !free_.empty(); }

/// The beginning of a member's part of a round, and how many of its positions lie in the epoch.
std::pair<std::int64_t, std::int64_t> LeaseScheduler::slice_of(const Round& round, std::uint32_t worker) const {
  const std::int64_t batch = options_.batches[worker];
  const auto slice = std::lower_bound(round.members.begin(), round.members.end(), worker) - round.members.begin();
  const std::int64_t first = round.begin + slice * batch;
  return {first, std::clamp<std::int64_t>(options_.epoch_size - first, 0, batch)};
}

std::optional<Lease> LeaseScheduler::grant_share(std::uint32_t worker) {
  const std::int64_t batch = options_.batches[worker];
  auto round =
      std::find_if(rounds_.begin(), rounds_.end(), [worker](const Round& r) { return r.waiting.contains(worker); });
  if (round == rounds_.end()) {
    if (!may_begin_round()) return std::nullopt;
    Round next{free_.begin()->first, next_index_, live_workers(), {}};
    next.waiting.insert(next.members.begin(), next.members.end());
    // Lost workers keep their indexes too: so an index depends only on the round and the worker.
    next_index_ += alive_.size();
    free_.clear();
    if (const auto end = next.begin + batch * static_cast<std::int64_t>(next.members.size()); end < options_.epoch_size)
      free_[end] = options_.epoch_size - end;
    drop_unfillable_tail();
    round = rounds_.insert(rounds_.end(), std::move(next));
  }
  const auto [first, covers] = slice_of(*round, worker);
  const Lease lease = hand_out(worker, round->first_index + worker, first, covers, round->begin);
  round->waiting.erase(worker);
  if (round->waiting.empty()) rounds_.erase(round);
  return lease;
}

std::optional<Lease> LeaseScheduler::grant_on_demand(std::uint32_t worker) {
  if (paused_ || free_.empty()) return std::nullopt;
  const std::int64_t batch = options_.batches[worker];
  const auto [first, available] = *free_.begin();
  free_.erase(free_.begin());
  if (options_.drop_tail && available < batch && first + available == options_.epoch_size) return std::nullopt;
  const std::int64_t covers = std::min(batch, available);
  if (covers < available) free_[first + covers] = available - covers;
  drop_unfillable_tail();
  return hand_out(worker, next_index_++, first, covers, first);
}

void LeaseScheduler::finish(std::uint32_t worker, std::uint64_t index, bool computed) {
  const auto found = outstanding_.find(index);
  if (found == outstanding_.end() || found->second.worker != worker) return;
  const auto covers = found->second.covers;
  done_positions_ += covers;
  run_done_ += covers;
  if (!computed) {
    given_up_ += covers;
    run_given_up_ += covers;
  }
  ++done_count_;
  outstanding_.erase(found);
}

std::vector<LeftLease> LeaseScheduler::lost(std::uint32_t worker) {
  std::vector<LeftLease> left;
  if (worker >= alive_.size() || !alive_[worker]) return left;
  alive_[worker] = false;
  for (auto it = outstanding_.begin(); it != outstanding_.end();) {
    if (it->second.worker != worker) {
      ++it;
      continue;
    }
    const auto& [lease, holder, covers] = it->second;
    left.push_back({lease.index, lease.epoch, lease.first, covers});
    if (options_.sharing == Sharing::on_demand) release(lease.first, covers);
    it = outstanding_.erase(it);
  }
  for (auto& round : rounds_) {
    if (round.waiting.erase(worker) == 0) continue;
    const auto [first, covers] = slice_of(round, worker);
    left.push_back({round.first_index + worker, epoch_, first % options_.epoch_size, covers});
  }
  std::erase_if(rounds_, [](const Round& round) { return round.waiting.empty(); });
  drop_unfillable_tail();  // the only batch that could have filled it may be lost
  return left;             // sorted: rounds that wait for the worker are younger than its granted leases
}

void LeaseScheduler::joined(std::uint32_t worker) {
  alive_.at(worker) = true;
  drop_unfillable_tail();  // a larger round may no longer fit
}

core::Result<void> LeaseScheduler::rewind(std::uint64_t rounds) {
  const auto workers = options_.batches.size();
  const auto index = begin_index_ + rounds * workers;
  if (options_.sharing != Sharing::equal || index < mark_.index || index > next_index_) {
    return core::fail(core::Errc::internal,
                      fmt::format("{} rounds of this session are not what epoch {} can go back to", rounds, epoch_));
  }
  const auto of_epoch = index - mark_.index;
  const auto position =
      std::min(mark_.position + static_cast<std::int64_t>(of_epoch) * options_.batches.front(), options_.epoch_size);
  outstanding_.clear();
  rounds_.clear();
  free_.clear();
  if (position < options_.epoch_size) free_[position] = options_.epoch_size - position;
  drop_unfillable_tail();
  const auto done = mark_.done_positions + position - mark_.position;
  run_done_ += done - done_positions_;
  done_positions_ = done;
  done_count_ = mark_.done_count + of_epoch;
  next_index_ = index;
  return {};
}

LeaseAccounts LeaseScheduler::accounts() const {
  LeaseAccounts accounts{.epoch = epoch_,
                         .done = done_positions_ - given_up_,
                         .given_up = given_up_,
                         .run_done = run_done_ - run_given_up_,
                         .run_given_up = run_given_up_};
  if (epoch_ >= options_.epochs) return accounts;
  accounts.size = options_.epoch_size;
  for (const auto& [index, lease] : outstanding_) accounts.leased += lease.covers;
  for (const auto& [first, count] : free_) accounts.free += count;
  for (const auto& round : rounds_)
    for (const auto worker : round.waiting) accounts.free += slice_of(round, worker).second;
  accounts.omitted = accounts.size - done_positions_ - accounts.leased - accounts.free;
  return accounts;
}

void LeaseScheduler::pause() { paused_ = true; }
void LeaseScheduler::resume() { paused_ = false; }

bool LeaseScheduler::would_grant() const { return !rounds_.empty() || may_begin_round(); }
bool LeaseScheduler::quiet() const { return outstanding_.empty() && !would_grant(); }
std::uint64_t LeaseScheduler::owed() const {
  std::uint64_t leases = 0;
  for (const auto& round : rounds_) leases += round.waiting.size();
  return leases;
}

bool LeaseScheduler::epoch_done() const { return outstanding_.empty() && rounds_.empty() && free_.empty(); }

void LeaseScheduler::next_epoch() {
  if (!epoch_done()) throw std::logic_error(fmt::format("next_epoch() while epoch {} is not done", epoch_));
  if (finished()) return;
  ++epoch_;
  open_epoch();
}

bool LeaseScheduler::finished() const {
  return epoch_ >= options_.epochs || (epoch_ + 1 == options_.epochs && epoch_done());
}
std::uint32_t LeaseScheduler::epoch() const noexcept { return epoch_; }

double LeaseScheduler::epoch_position() const {
  if (epoch_ >= options_.epochs) return options_.epochs;
  // Not computed from positions: a dropped tail or a lost slice is never finished.
  if (epoch_done()) return epoch_ + 1.0;
  return epoch_ + static_cast<double>(done_positions_) / static_cast<double>(options_.epoch_size);
}

std::uint64_t LeaseScheduler::done_count() const noexcept { return done_count_; }

std::uint64_t LeaseScheduler::leases_per_epoch(std::uint32_t workers_alive) const {
  const auto& batches = options_.batches;
  const auto workers = static_cast<std::int64_t>(std::max<std::uint32_t>(workers_alive, 1));
  const auto total = std::accumulate(batches.begin(), batches.end(), std::int64_t{0});
  const auto all = static_cast<std::int64_t>(batches.size());
  std::int64_t leases = 0;
  if (options_.sharing == Sharing::equal) {
    const std::int64_t round = batches[0] * workers;
    leases = workers * (options_.drop_tail ? options_.epoch_size / round : divide_up(options_.epoch_size, round));
  } else {
    leases = options_.drop_tail ? options_.epoch_size * all / total : divide_up(options_.epoch_size * all, total);
  }
  return static_cast<std::uint64_t>(leases);
}

std::string LeaseScheduler::state() const {
  if (!quiet()) throw std::logic_error("LeaseScheduler::state() while leases are out: pause() and wait until quiet()");
  nlohmann::ordered_json json;
  json["version"] = kStateVersion;
  json["sharing"] = name(options_.sharing);
  json["epoch_size"] = options_.epoch_size;
  json["batches"] = options_.batches;
  json["epoch"] = epoch_;
  json["next_index"] = next_index_;
  json["done_count"] = done_count_;
  json["done_positions"] = done_positions_;
  json["given_up"] = given_up_;
  json["run_done"] = run_done_;
  json["run_given_up"] = run_given_up_;
  json["lr_factor"] = lr_factor_;
  json["free"] = nlohmann::ordered_json::array();
  for (const auto& [first, count] : free_) json["free"].push_back({first, count});
  return json.dump();
}

core::Result<void> LeaseScheduler::restore(const std::string& state) try {
  const auto json = nlohmann::json::parse(state);
  if (const int version = json.at("version"); version != kStateVersion)
    return core::fail(core::Errc::config,
                      fmt::format("lease state has version {}; this program reads {}", version, kStateVersion));
  if (const std::string sharing = json.at("sharing"); sharing != name(options_.sharing))
    return core::fail(
        core::Errc::config,
        fmt::format("lease state is of '{}' sharing and this run uses '{}': resume with a strategy of the same kind",
                    sharing, name(options_.sharing)));
  if (const std::int64_t size = json.at("epoch_size"); size != options_.epoch_size)
    return core::fail(
        core::Errc::config,
        fmt::format("lease state is of a data set of {} samples and this one has {}: resume with the same data", size,
                    options_.epoch_size));
  const auto batches = json.at("batches").get<std::vector<std::int64_t>>();
  if (options_.sharing == Sharing::equal && (batches.empty() || batches.front() != options_.batches.front()))
    return core::fail(core::Errc::config, fmt::format("lease state is of data.batch = {} and this run has {}: a run "
                                                      "whose workers go in step resumes with the same batch",
                                                      batches.empty() ? 0 : batches.front(), options_.batches.front()));
  LeaseScheduler restored(options_);
  restored.epoch_ = json.at("epoch");
  restored.next_index_ = json.at("next_index");
  restored.done_count_ = json.at("done_count");
  restored.lr_factor_ = json.value("lr_factor", 1.0);  // older programs had none
  if (!(restored.lr_factor_ > 0) || !std::isfinite(restored.lr_factor_))
    return core::fail(core::Errc::corrupt,
                      fmt::format("lease state has the learning-rate factor {}", restored.lr_factor_));
  restored.open_epoch();
  if (restored.epoch_ < options_.epochs) {
    restored.done_positions_ = json.at("done_positions");
    restored.free_.clear();
    std::int64_t end = 0;
    for (const auto& range : json.at("free")) {
      const std::int64_t first = range.at(0), count = range.at(1);
      if (first < end || count < 1 || count > options_.epoch_size - first)
        return core::fail(core::Errc::corrupt,
                          fmt::format("lease state has an impossible range of {} samples at {}", count, first));
      end = first + count;
      restored.free_[first] = count;
    }
    restored.given_up_ = json.value("given_up", std::int64_t{0});  // older programs had neither
    restored.drop_unfillable_tail();
  }
  restored.run_done_ = json.value("run_done", restored.epoch_ * options_.epoch_size + restored.done_positions_);
  restored.run_given_up_ = json.value("run_given_up", std::int64_t{0});
  if (restored.given_up_ < 0 || restored.given_up_ > restored.done_positions_ ||
      restored.given_up_ > restored.run_given_up_ || restored.run_given_up_ > restored.run_done_ ||
      restored.done_positions_ > restored.run_done_)
    return core::fail(core::Errc::corrupt, "lease state counts more samples than were done");
  restored.begin_index_ = restored.next_index_;
  restored.mark_epoch();
  *this = std::move(restored);
  return {};
} catch (const nlohmann::json::exception& e) {
  return core::fail(core::Errc::corrupt, fmt::format("lease state cannot be read: {}", e.what()));
}

}  // namespace troupe::data
