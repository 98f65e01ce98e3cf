/// The workers of a run, lost ones and newcomers included: which of them are members, and at which site each is. Plain value; one thread.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "strategies/host/types.hpp"

namespace troupe::coordination {

using SiteId = std::uint32_t;  ///< a group of members in one process; 0: the coordinator's

class Members {
 public:
  /// All are members, at site 0.
  explicit Members(std::uint32_t workers) : alive_(workers, true) {}
  /// By rank and by shard; empty: all are at site 0.
  void place(std::vector<SiteId> workers, std::vector<SiteId> servers);

  void remove(strategies::WorkerId worker) { alive_[worker] = false; }
  void add(strategies::WorkerId worker) { alive_[worker] = true; }
  /// Since the last call of this, members have come or gone: `epoch` grows.
  void announce() { ++epoch_; }

  [[nodiscard]] bool has(strategies::WorkerId worker) const { return worker < alive_.size() && alive_[worker]; }
  [[nodiscard]] std::uint32_t count() const;
  [[nodiscard]] bool all() const { return count() == alive_.size(); }
  [[nodiscard]] std::vector<strategies::WorkerId> list() const;  ///< ascending
  [[nodiscard]] std::uint64_t epoch() const noexcept { return epoch_; }
  [[nodiscard]] strategies::Membership membership() const { return {epoch_, list()}; }

  [[nodiscard]] std::vector<strategies::WorkerId> at(SiteId site) const;  ///< workers, lost ones included
  /// False if all workers of the site are lost. A site without workers lives as long as the run.
  [[nodiscard]] bool lives(SiteId site) const;
  [[nodiscard]] bool has_center(SiteId site) const;  ///< a server is there
  /// Whether a part of the centre is lost with the worker's site.
  [[nodiscard]] bool with_center(strategies::WorkerId worker) const;

 private:
  std::vector<bool> alive_;  // by rank
  std::vector<SiteId> worker_sites_;
  std::vector<SiteId> server_sites_;
  std::uint64_t epoch_ = 0;
};

}  // namespace troupe::coordination
