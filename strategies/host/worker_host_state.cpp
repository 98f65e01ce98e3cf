// WorkerHost: saving the state between two steps, and restoring it.
#include <algorithm>
#include <stdexcept>
#include <string>
#include <utility>

#include "strategies/host/state_text.hpp"
#include "strategies/host/worker_host.hpp"

namespace troupe::strategies {

void WorkerHost::settle() {
  if (!computing_ || buckets_told_ != 0) throw std::logic_error("worker host: settled, but not before a step");
  computing_ = false;
  ending_ = true;
  std::vector<Late> kept;
  telling_late_.swap(late_);
  for (const auto& late : telling_late_) {
    const bool of_peers =
        std::holds_alternative<PeerMessageArrived>(late.arrival) || std::holds_alternative<SendSkipped>(late.arrival);
    if (of_peers)
      kept.push_back(late);
    else
      std::visit([&](const auto& a) { handle(a, late.at); }, late.arrival);
  }
  telling_late_.clear();
  late_.insert(late_.begin(), kept.begin(), kept.end());
  ending_ = false;
  computing_ = true;
  computed_on_ = versions_;  // the step begins after this
}

bool WorkerHost::settled() const noexcept {
  const auto of_peers = [](const Late& late) {
    return std::holds_alternative<PeerMessageArrived>(late.arrival) ||
           std::holds_alternative<SendSkipped>(late.arrival);
  };
  return computing_ && buckets_told_ == 0 && pending_exchanges_.empty() &&
         std::all_of(late_.begin(), late_.end(), of_peers);
}

std::string WorkerHost::state() const {
  if (!settled()) throw std::logic_error("worker host: asked for its state with something under way");
  std::map<std::uint32_t, Step> versions;
  for (std::size_t shard = 0; shard < versions_.size(); ++shard)
    versions.emplace(static_cast<std::uint32_t>(shard), versions_[shard]);
  std::string skips;
  for (const auto& late : late_) {
    if (const auto* skipped = std::get_if<SendSkipped>(&late.arrival))
      skips += write_state({{"to", std::uint64_t{skipped->to}}, {"weight", skipped->weight}}) + '\n';
  }
  return write_state({{"step", step_},
                      {"epoch", epoch_},
                      {"lr", double{lr_}},
                      {"versions", versions},
                      {"skips", skips},
                      {"half", rule_->state()},
                      {"optimizer_steps", optimizer_steps_}});
}

core::Result<void> WorkerHost::restore(const std::string& text) {
  if (started_) throw std::logic_error("worker host: restored after it was started");
  double lr = 0;
  std::map<std::uint32_t, Step> versions;
  std::string skips;
  std::string rule_state;
  const auto read_fields = [&](std::string_view from) {
    return read_state(from, {{"step", &step_},
                             {"epoch", &epoch_},
                             {"lr", &lr},
                             {"versions", &versions},
                             {"skips", &skips},
                             {"half", &rule_state},
                             {"optimizer_steps", &optimizer_steps_}});
  };
  // Version 0.1 did not write the last field: it used the number of the step.
  if (auto read = read_fields(text); !read && !read_fields(text + write_state({{"optimizer_steps", optimizer_steps_}})))
    return read;
  const bool shards = versions.empty() || versions.rbegin()->first + std::size_t{1} == versions.size();  // 0, 1, …
  if (versions.size() != versions_.size() || !shards)
    return core::fail(core::Errc::corrupt, "the state of a worker with another number of shards");
  lr_ = static_cast<float>(lr);
  for (const auto& [shard, version] : versions) versions_[shard] = version;
  computed_on_ = versions_;
  for (std::size_t begin = 0; begin < skips.size();) {
    const auto end = std::min(skips.find('\n', begin), skips.size());
    std::uint64_t to = 0;
    SendSkipped skipped;
    if (auto read = read_state(skips.substr(begin, end - begin), {{"to", &to}, {"weight", &skipped.weight}}); !read)
      return read;
    skipped.to = static_cast<WorkerId>(to);
    late_.push_back({skipped, Duration{0}});
    begin = end + 1;
  }
  if (auto restored = rule_->restore(rule_state); !restored) return restored;
  started_ = computing_ = true;
  ports_.worker.compute(step_);
  return {};
}

double WorkerHost::weight() const noexcept {
  double weight = rule_->weight();
  for (const auto& skipped : skipped_sends_) weight += skipped.weight;
  for (const auto& late : late_) {
    if (const auto* skipped = std::get_if<SendSkipped>(&late.arrival)) weight += skipped->weight;
  }
  return weight;
}

}  // namespace troupe::strategies
