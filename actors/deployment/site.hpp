/// The members of a run that are at one site: they share memory and lend it to each other. A site is spawned in steps, because others
/// take theirs at the same time; between the steps its owner tells sites of each other.
///
///     open        the endpoint, where there are other sites           → address()
///     meet        the others' addresses
///     compile     replicas; prepare() does it where nobody has before
///     fetch_start what members begin with, when site 0 has a checkpoint and this one has not
///     prepare     replicas get what they begin with, shards are cut   → members()
///     measure     how fast members of different sites reduce, where that is to be known
///     begin       who is where; everyone is told, and workers ask for their first batches
///     halt
///
/// One thread. Its actors may end after it: what it was given outlives the actor system.
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "actors/exchanger/exchanger.hpp"
#include "actors/protocol/handles.hpp"
#include "actors/protocol/vocabulary.hpp"
#include "actors/worker/worker.hpp"
#include "nn/backend.hpp"

namespace troupe::actors {

/// What every site of a process works with.
struct SiteGround {
  caf::actor_system* system = nullptr;
  const Blueprint* plan = nullptr;
  nn::Backend* backend = nullptr;
  core::Allocator* memory = nullptr;
  const core::Clock* clock = nullptr;
};

struct SiteSetup {
  std::uint32_t site = 0;
  std::vector<std::uint32_t> workers{};        // by rank: who is here
  std::vector<std::uint32_t> servers{};        // by shard
  ExchangePlan exchange{};                     // in place: there are no other sites
  transport::EndpointOptions options{};        // of the endpoint; completions and name are the exchanger's
  StartCargo start{};                          // site 0: see ExchangerSetup
  std::size_t most_floats = 0;                 // of any vector that members lend; read where there are other sites
  std::optional<std::uint64_t> fingerprint{};  // of the run's layout; none: the first worker's is it
  std::optional<nn::Plan> plan{};              // of the run; none: the first worker's backend decides
};

class Site {
 public:
  Site(const SiteGround& ground, SiteSetup setup);
  ~Site();
  Site(const Site&) = delete;
  Site& operator=(const Site&) = delete;

  /// What transport::make_endpoint says; Errc::timeout.
  [[nodiscard]] core::Result<void> open();
  [[nodiscard]] const std::string& address() const noexcept { return address_; }
  /// Grows while messages move between this site and others. Any thread may look.
  [[nodiscard]] const std::atomic<std::uint64_t>& moves() const noexcept { return *moves_; }
  void meet(const SiteAddresses& addresses);
  /// A checkpoint file, however long it takes while it moves. Errc::peer_lost, timeout.
  [[nodiscard]] core::Result<StartCargo> fetch_start();
  /// What a replica says; Errc::config when a worker lays its parameters out otherwise than the others, timeout. Once, or left
  /// to prepare().
  [[nodiscard]] core::Result<void> compile();
  /// compile()'s errors; Errc::no_memory.
  [[nodiscard]] core::Result<void> prepare(const std::shared_ptr<const StartState>& start);

  /// All sites of the group at the same time. Errc::peer_lost, timeout.
  [[nodiscard]] Measured measure(const MeasureOrder& order);

  /// After prepare(), where anyone is here.
  [[nodiscard]] const std::shared_ptr<const nn::Layout>& layout() const noexcept { return layout_; }
  [[nodiscard]] const std::optional<nn::Plan>& plan() const noexcept { return setup_.plan; }
  [[nodiscard]] const ExchangerActor& exchanger() const noexcept { return exchanger_; }
  [[nodiscard]] const SiteMembers& members() const noexcept { return members_; }

  /// `company`: the members themselves as far as they are known here; who is at another site becomes a stand-in.
  /// Returns the company as who supervises it from here sees it.
  Company begin(Company company);
  /// Tells everybody, and waits half a minute at most until they are gone. Idempotent. False: somebody is not.
  bool halt();

 private:
  /// `member` may be none: see actors/protocol/proxy.hpp.
  [[nodiscard]] WorkerActor stand_in(std::uint32_t worker, const WorkerActor& member);
  [[nodiscard]] core::Result<void> load(const std::shared_ptr<const StartState>& start);
  [[nodiscard]] core::Result<void> cut_shards(const StartState& start);
  [[nodiscard]] WorkerSetup worker_setup(std::uint32_t worker) const;

  SiteGround ground_;
  SiteSetup setup_;
  std::shared_ptr<const nn::Layout> layout_;
  std::string address_;
  std::shared_ptr<std::atomic<std::uint64_t>> moves_ = std::make_shared<std::atomic<std::uint64_t>>(0);
  std::shared_ptr<exchange::Arenas> arenas_;  // of the workers; none: ground_.memory
  ExchangerActor exchanger_;
  SiteMembers members_;
  std::vector<WorkerActor> workers_elsewhere_;  // stand-ins
  std::vector<ServerActor> servers_elsewhere_;
  caf::scoped_actor self_;
};

/// Layout and choices of a run that has no worker in this process: a replica is compiled for them and thrown away.
[[nodiscard]] core::Result<ReplicaFacts> probe(const SiteGround& ground, const std::optional<nn::Plan>& plan);

/// The longest vector that members of a run lend each other: floats.
[[nodiscard]] std::size_t most_floats(const Blueprint& plan, const nn::Layout& layout);

}  // namespace troupe::actors
