/// The members of a run at one site: they share memory and lend it to each other. A site is spawned in steps, at the same time as other
/// sites. Between the steps its owner exchanges the sites' addresses and members.
///
///     open        makes the endpoint, if there are other sites        → address()
///     meet        connects to the other sites' addresses
///     compile     compiles the replicas; prepare() does it if this was not called
///     fetch_start gets the checkpoint from site 0, if this site needs it
///     prepare     loads the start state into replicas, cuts shards    → members()
///     measure     measures reductions between sites, if these are to be chosen
///     begin       gives all members the directory; loaders ask for the first leases
///     halt
///
/// One thread; calls block. Its actors may end after it: the objects of its context must outlive the actor system.
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "actors/deployment/pinning.hpp"
#include "actors/exchanger/exchanger.hpp"
#include "actors/protocol/handles.hpp"
#include "actors/protocol/vocabulary.hpp"
#include "actors/worker/worker.hpp"
#include "experiment/state/vector_memory.hpp"
#include "nn/backend.hpp"

namespace troupe::actors {

/// The objects that all sites of a process share; not owned.
struct SiteContext {
  caf::actor_system* system = nullptr;
  const RunSpec* spec = nullptr;
  nn::Backend* backend = nullptr;
  core::Allocator* memory = nullptr;  // of the host
  const core::Clock* clock = nullptr;
};

struct SiteSetup {
  std::uint32_t site = 0;
  std::vector<std::uint32_t> workers{};        // ranks of the workers here
  std::vector<std::uint32_t> servers{};        // shards of the servers here
  ExchangePlan exchange{};                     // in_place(): there are no other sites
  transport::EndpointOptions options{};        // of the endpoint; the exchanger sets completions and name
  StartPayload start{};                        // site 0: see ExchangerSetup
  std::size_t most_floats = 0;                 // longest vector that members lend; used if there are other sites
  std::optional<std::uint64_t> fingerprint{};  // of the run's layout; none: the first worker's layout is used
  std::optional<nn::Plan> plan{};  // of the run; none: the first worker's backend chooses, for all workers here
};

class Site {
 public:
  Site(const SiteContext& context, SiteSetup setup);
  ~Site();
  Site(const Site&) = delete;
  Site& operator=(const Site&) = delete;

  /// Errors: those of transport::make_endpoint; Errc::timeout.
  [[nodiscard]] core::Result<void> open();
  [[nodiscard]] const std::string& address() const noexcept { return address_; }
  /// Grows while bytes move between this site and others. Any thread may read it.
  [[nodiscard]] const std::atomic<std::uint64_t>& moves() const noexcept { return *moves_; }
  void meet(const SiteAddresses& addresses);
  /// The checkpoint file. Waits as long as bytes move, and kFetchSilence without. Errc::peer_lost, also after that silence.
  [[nodiscard]] core::Result<StartPayload> fetch_start();
  /// Call it at most once. Errors: those of compiling a replica; Errc::config when the workers' layouts of parameters differ;
  /// Errc::timeout.
  [[nodiscard]] core::Result<void> compile();
  /// Errors: those of compile(); Errc::out_of_memory; Errc::io: a device failed; Errc::program: a program did not take its state;
  /// Errc::internal: a worker did not load the start state.
  [[nodiscard]] core::Result<void> prepare(const std::shared_ptr<const StartState>& start);

  /// Set by prepare(); plan() only if a worker is here or the setup has a plan.
  [[nodiscard]] const std::shared_ptr<const nn::Layout>& layout() const noexcept { return layout_; }
  [[nodiscard]] const std::optional<nn::Plan>& plan() const noexcept { return setup_.plan; }
  [[nodiscard]] const ExchangerActor& exchanger() const noexcept { return exchanger_; }
  [[nodiscard]] const SiteMembers& members() const noexcept { return members_; }
  /// The cores of the workers here, for the user; may be empty.
  [[nodiscard]] const std::string& pinning() const noexcept { return pinning_.text; }
  /// Where its vectors are.
  [[nodiscard]] const experiment::VectorMemory& memory() const noexcept { return memory_; }

  /// `actors`: the known members themselves; members of other sites are replaced by proxies. Returns the directory for the supervisors at
  /// this site: its worker proxies end with their members.
  ActorDirectory begin(ActorDirectory actors);
  /// Tells all actors to end: Halt::in_order. Does not wait. Idempotent.
  void dismiss(bool in_order);
  /// dismiss(), and waits for the actors, at most kHaltDeadline from one end to the next, and nn::patience_at_end() more for programs.
  /// Idempotent. False: an actor has not ended.
  bool halt(bool in_order = false);
  /// Of the first program that failed after its last batch; empty before halt(), and if there is none.
  [[nodiscard]] const std::string& program_failure() const noexcept { return program_failure_; }

 private:
  /// `member` may be null: see actors/protocol/proxy.hpp.
  [[nodiscard]] WorkerActor proxy(std::uint32_t worker, const WorkerActor& member);
  /// The workers [first, end) of the setup, at the same time.
  [[nodiscard]] core::Result<void> compile(std::size_t first, std::size_t end, bool measures = false);
  [[nodiscard]] core::Result<void> load(const std::shared_ptr<const StartState>& start);
  [[nodiscard]] core::Result<void> cut_shards(const StartState& start);
  [[nodiscard]] WorkerSetup worker_setup(std::size_t index) const;
  [[nodiscard]] LoaderActor spawn_loader(std::uint32_t worker) const;

  [[nodiscard]] nn::CompileOptions options_of(std::uint32_t worker) const;
  [[nodiscard]] core::Allocator& arenas_here() const;
  [[nodiscard]] core::Result<std::shared_ptr<core::DeviceReduction>> make_reduction() const;

  SiteContext context_;
  SiteSetup setup_;
  SitePinning pinning_;
  experiment::VectorMemory memory_;      // of shards, and of what workers lend unless the exchanger maps arenas
  experiment::MappableMemory mappable_;  // of the exchanger's arenas, where vectors are on a device
  std::shared_ptr<const nn::Layout> layout_;
  std::string address_;
  std::shared_ptr<std::atomic<std::uint64_t>> moves_ = std::make_shared<std::atomic<std::uint64_t>>(0);
  std::shared_ptr<exchange::Arenas> arenas_;  // memory of the workers' loans; none: memory_
  ExchangerActor exchanger_;
  SiteMembers members_;
  std::vector<DecoderActor> decoders_;
  std::vector<WorkerActor> workers_elsewhere_;  // proxies
  std::vector<ServerActor> servers_elsewhere_;
  std::string program_failure_;
  std::size_t ending_ = 0;        // actors that were dismissed, and may not have ended
  core::Duration longest_end_{};  // from one of their ends to the next
  caf::scoped_actor self_;
};

/// Layout and backend plan for a process without compiled workers. Cost: compiles a replica and destroys it.
[[nodiscard]] core::Result<ReplicaFacts> probe(const SiteContext& context, const std::optional<nn::Plan>& plan);

/// Length of the longest vector that members of a run lend each other, in floats.
[[nodiscard]] std::size_t most_floats(const RunSpec& spec, const nn::Layout& layout);

}  // namespace troupe::actors
