/// What members in other processes may tell the coordinator and the recorder, before these hear it: who they are, and numbers that can be.
/// A process speaks for the sites that are in it and for nobody else. Members of this process are believed.
///
/// What is left is a member's own account, and believed: of how far it came, and of whom it has lost.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "actors/protocol/messages.hpp"
#include "actors/protocol/refusal.hpp"
#include "actors/protocol/site_messages.hpp"
#include "actors/protocol/vocabulary.hpp"

namespace troupe::actors {

/// In which process each site is, as far as it is another one. Thread-safe: the coordinator writes, the recorder reads.
class SiteNodes {
 public:
  void set(std::uint32_t site, const caf::node_id& node);
  [[nodiscard]] bool has(std::uint32_t site, const caf::node_id& node) const;

 private:
  mutable std::mutex mutex_;
  std::map<std::uint32_t, caf::node_id> nodes_;
};

/// Who has sent the message that an actor handles.
struct Speaker {
  bool here = true;  ///< in this process
  caf::node_id node{};
};
template <class Self>
[[nodiscard]] Speaker speaker_of(Self* self) {
  const auto& sender = self->current_sender();
  if (!sender || sender->node() == self->node()) return {};
  return {false, sender->node()};
}

/// Values; one thread each.
class MemberRules {
 public:
  /// Notes of one process that are kept.
  static constexpr std::uint64_t kMostNotes = 1000;

  struct Facts {
    std::uint32_t workers = 0;
    std::uint32_t servers = 0;
    std::vector<std::uint32_t> worker_sites{};  // by rank; none: everybody is here
    std::vector<std::uint32_t> server_sites{};  // by shard
    std::shared_ptr<SiteNodes> nodes{};
    std::uint64_t most_leases = 0;   // that a worker may ask for at a time
    std::uint64_t most_samples = 0;  // of a lease
  };
  MemberRules() = default;
  explicit MemberRules(Facts facts) : facts_(std::move(facts)) {}

  /// `wanted`: what the worker has asked for and not got yet.
  [[nodiscard]] Refusal check(const Speaker& speaker, const LeaseRequest& request, std::uint64_t wanted) const;
  /// No more steps than it has leases, and no end of reports of the same.
  [[nodiscard]] Refusal check(const Speaker& speaker, const WorkerProgress& progress);
  [[nodiscard]] Refusal check(const Speaker& speaker, const Trouble& trouble) const;
  [[nodiscard]] Refusal check(const Speaker& speaker, const SiteLost& lost) const;
  /// Of a site of its own, and of others that there are.
  [[nodiscard]] Refusal check(const Speaker& speaker, const TransferNews& news) const;
  /// For the log. So many of a process that nobody fills a disk with them.
  [[nodiscard]] Refusal check(const Speaker& speaker, const Note& note);
  /// Whole records of halves and snapshots of its own.
  [[nodiscard]] Refusal check(const Speaker& speaker, const JournalRecords& records) const;

  void granted(std::uint32_t worker, std::uint64_t leases) { accounts_[worker].granted += leases; }
  /// It cannot have made more steps in this session than it has leases.
  [[nodiscard]] bool may_have(std::uint32_t worker, std::uint64_t steps) const;
  /// What a worker says of itself when a journal segment begins: a slot for each letter, from somebody.
  [[nodiscard]] static Refusal check(const MemberState& state, std::size_t workers);
  /// The same of what it has written and come, when training stands still.
  [[nodiscard]] static Refusal check(const Letters& letters, std::size_t workers);
  /// A newcomer's site is there.
  void moved(std::uint32_t site, const caf::node_id& node);

  /// Workers in the speaker's process.
  [[nodiscard]] std::vector<std::uint32_t> workers_of(const Speaker& speaker) const;

 private:
  [[nodiscard]] bool speaks_for_site(const Speaker& speaker, std::uint32_t site) const;
  [[nodiscard]] bool speaks_for_worker(const Speaker& speaker, std::uint32_t worker) const;
  [[nodiscard]] bool speaks_for_server(const Speaker& speaker, std::uint32_t shard) const;
  [[nodiscard]] Refusal check_record(const Speaker& speaker, const core::JournalRecord& record) const;

  /// Of a worker elsewhere, since it became a member.
  struct Account {
    std::uint64_t granted = 0;  // leases
    std::uint64_t done = 0;     // of these, as it says
    std::uint64_t steps = 0;    // that it has reported
    std::uint64_t repeats = 0;  // reports that said no more than the one before
  };

  Facts facts_;
  std::map<std::uint32_t, Account> accounts_;    // by worker
  std::map<caf::node_id, std::uint64_t> notes_;  // that a process has sent
};

}  // namespace troupe::actors
