/// Checks messages of members in other processes before the coordinator and the recorder handle them: the sender's identity and the range
/// of numbers. A process may report only for the sites in it. Members of this process are trusted.
///
/// Two reports cannot be checked and are accepted: how far a member came, and which members it has lost.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "actors/protocol/messages.hpp"
#include "actors/protocol/program_lines.hpp"
#include "actors/protocol/refusal.hpp"
#include "actors/protocol/site_messages.hpp"
#include "actors/protocol/token_bucket.hpp"
#include "actors/protocol/vocabulary.hpp"

namespace troupe::actors {

/// The process of each site that is in another process. Thread-safe: the coordinator writes, the recorder reads.
class SiteNodes {
 public:
  void set(std::uint32_t site, const caf::node_id& node);
  [[nodiscard]] bool has(std::uint32_t site, const caf::node_id& node) const;

 private:
  mutable std::mutex mutex_;
  std::map<std::uint32_t, caf::node_id> nodes_;
};

/// The sender of the message that an actor handles.
struct Sender {
  bool here = true;  ///< in this process
  caf::node_id node{};
};
template <class Self>
[[nodiscard]] Sender sender_of(Self* self) {
  const auto& sender = self->current_sender();
  if (!sender || sender->node() == self->node()) return {};
  return {false, sender->node()};
}

/// A value; not thread-safe. Copies share only SiteNodes.
class MemberMessageChecks {
 public:
  /// Accepted notes of one process, beside the lines of programs.
  static constexpr double kNotesAtOnce = 1000, kNotesPerSecond = 1;
  /// Accepted reports of a worker that say nothing new. One that waits sends one a second (kReportInWaits), and they may arrive together.
  static constexpr double kRepeatsAtOnce = 128, kRepeatsPerSecond = 4;

  struct Facts {
    std::uint32_t workers = 0;
    std::uint32_t servers = 0;
    std::vector<std::uint32_t> worker_sites{};  // by rank; none: all are in this process
    std::vector<std::uint32_t> server_sites{};  // by shard
    std::shared_ptr<SiteNodes> nodes{};
    std::uint64_t most_leases = 0;   // that a worker may ask for at a time
    std::uint64_t most_samples = 0;  // of a lease
  };
  MemberMessageChecks() = default;
  explicit MemberMessageChecks(Facts facts) : facts_(std::move(facts)) {}

  /// `wanted`: leases that the worker has requested and not received yet.
  [[nodiscard]] Refusal check(const Sender& sender, const LeaseRequest& request, std::uint64_t wanted) const;
  /// Refuses more steps than the worker has leases, and repetition of one report faster than workers report.
  [[nodiscard]] Refusal check(const Sender& sender, const WorkerProgress& progress, core::Duration now);
  [[nodiscard]] Refusal check(const Sender& sender, const RunError& run_error) const;
  [[nodiscard]] Refusal check(const Sender& sender, const SiteLost& lost) const;
  /// Accepts news with a site of the sender and no unknown site.
  [[nodiscard]] Refusal check(const Sender& sender, const TransferNews& news) const;
  /// Accepts notes of a process, and lines of its programs, only as fast as they may come, so that no process fills a disk.
  [[nodiscard]] Refusal check(const Sender& sender, const Note& note, core::Duration now);
  /// Accepts whole records of events and snapshots of the sender's own members.
  [[nodiscard]] Refusal check(const Sender& sender, const JournalRecords& records) const;

  void granted(std::uint32_t worker, std::uint64_t leases) { accounts_[worker].granted += leases; }
  /// Whether the worker can have made `steps` steps in this session: no more than it has leases.
  [[nodiscard]] bool may_have(std::uint32_t worker, std::uint64_t steps) const;
  /// A worker's state when a journal segment begins: one slot per peer message, each from a known worker.
  [[nodiscard]] static Refusal check(const MemberState& state, std::size_t workers);
  /// A worker's counts of peer messages while training is paused, checked in the same way.
  [[nodiscard]] static Refusal check(const PeerMessageCounts& peer_messages, std::size_t workers);
  /// A newcomer's site is in the process `node`: its workers' accounts begin anew.
  void site_replaced(std::uint32_t site, const caf::node_id& node);

  /// Workers in the sender's process.
  [[nodiscard]] std::vector<std::uint32_t> workers_of(const Sender& sender) const;

 private:
  [[nodiscard]] bool may_send_for_site(const Sender& sender, std::uint32_t site) const;
  [[nodiscard]] bool may_send_for_worker(const Sender& sender, std::uint32_t worker) const;
  [[nodiscard]] bool may_send_for_server(const Sender& sender, std::uint32_t shard) const;
  [[nodiscard]] bool is_traffic(const WorkerProgress& progress) const;
  [[nodiscard]] Refusal check_record(const Sender& sender, const core::JournalRecord& record) const;

  /// Of a worker in another process, since it became a member.
  struct Account {
    std::uint64_t granted = 0;  // leases
    std::uint64_t done = 0;     // of these, as it reports
    std::uint64_t steps = 0;    // that it has reported
    TokenBucket repeats{kRepeatsAtOnce, kRepeatsPerSecond};
  };

  Facts facts_;
  std::map<std::uint32_t, Account> accounts_;  // by worker
  std::map<caf::node_id, TokenBucket> notes_;  // of a process
  std::map<caf::node_id, TokenBucket> lines_;  // of its programs
};

}  // namespace troupe::actors
