/// Spawns a company and takes it apart: who is created when, where, on which thread, with which memory. Used by run.cpp; knows
/// nothing of epochs or files.
#pragma once

#include <memory>
#include <optional>
#include <stop_token>

#include "actors/coordinator/coordinator.hpp"
#include "actors/run/launch.hpp"
#include "actors/recorder/recorder.hpp"
#include "actors/deployment/site.hpp"
#include "actors/deployment/steward.hpp"
#include "actors/control/system.hpp"
#include "actors/protocol/vocabulary.hpp"
#include "nn/backend.hpp"
#include "nn/checkpoint/metered_files.hpp"

namespace troupe::actors {

/// What a company begins with.
struct Beginning {
  std::shared_ptr<const Checkpoint> checkpoint;   // null: a new run
  std::string checkpoint_file;                    // where it was
  std::shared_ptr<const RunDirectory> directory;  // this and checkpoints: of a new run when its sites are made
  std::shared_ptr<nn::MeteredFiles> disk;         // and disk, which is under the checkpoints
  std::shared_ptr<nn::CheckpointStore> checkpoints;
  std::vector<Note> notes;
  std::optional<nn::Plan> plan;            // of the run that is resumed
  std::optional<ExchangePlan> exchange{};  // of its last session
  bool complete = false;                   // nothing is left to train
};

/// A company: its sites here, and those that nodes make for it. One thread. Its actors may end after it: what they were given (plan,
/// backend, memory, clock) outlives the actor system, whose destructor waits for them.
class Assembly {
 public:
  /// `stop` ends the waits of make_sites().
  Assembly(const SiteGround& ground, Launch launch, std::stop_token stop = {});
  ~Assembly();
  Assembly(const Assembly&) = delete;
  Assembly& operator=(const Assembly&) = delete;

  /// Spawns the members and compiles the replicas, each on its worker's thread. Needs of `beginning` what is there before the run's
  /// directory is. After an Error the destructor sends home whoever was spawned; after Errc::interrupted nobody waits for nodes, which
  /// finish what they are at and end their sites by themselves.
  [[nodiscard]] core::Result<void> make_sites(const Beginning& beginning);
  /// Spawns who supervises them, and lets the run begin. Errors: of RunDirectory::write_plan.
  [[nodiscard]] core::Result<CoordinatorActor> begin(const Beginning& beginning, const report::ConsoleOptions& console);
  /// Ends everyone. `end` is what the recorder writes and shows last; the Error is what kept it from that.
  [[nodiscard]] core::Result<void> finish(const RunEnd& end);

 private:
  /// A site, here or at a node.
  struct Place {
    std::uint32_t number = 0;
    std::unique_ptr<Site> here{};
    const Node* node = nullptr;
    NodeActor asked{};  // stand-ins: they answer when the process is lost
    SiteActor there{};
    SiteMembers members{};
  };
  [[nodiscard]] core::Result<void> open_sites(const Beginning& beginning);
  [[nodiscard]] core::Result<void> prepare_sites();
  [[nodiscard]] bool is_whole(const Place& place) const;
  [[nodiscard]] core::Result<void> choose_reductions(const Beginning& beginning);
  [[nodiscard]] core::Result<std::vector<exchange::Timing>> measure(const std::vector<exchange::Algorithm>& algorithms);
  [[nodiscard]] SiteOrder order_for(const Place& place, bool resumed) const;
  [[nodiscard]] core::Error at(const Place& place, core::Error error) const;
  [[nodiscard]] core::Error no_answer(const Place& place, const std::string& what, const caf::error& error) const;
  void spawn_supervisors(const Beginning& beginning, const report::ConsoleOptions& console);
  [[nodiscard]] std::string run_plan() const;
  [[nodiscard]] MemberRules member_rules() const;
  [[nodiscard]] std::string name_of(std::uint32_t worker) const;
  [[nodiscard]] StewardActor spawn_steward();
  void begin_sites();
  void halt();

  SiteGround ground_;
  const Blueprint& plan_;
  Launch launch_;
  const std::stop_token stop_;
  std::shared_ptr<const StartState> start_;
  ExchangePlan exchange_;
  std::shared_ptr<const nn::Layout> layout_;
  nn::Plan made_plan_;         // worker 0's
  std::uint64_t data_ = 0;     // fingerprint; of a run with nodes
  std::vector<Place> places_;  // by site
  SiteAddresses addresses_;
  CoordinatorActor coordinator_;
  RecorderActor recorder_;
  std::shared_ptr<nn::MeteredFiles> disk_;  // the recorder's
  EvaluatorActor evaluator_;
  StewardActor steward_;  // of a run over nodes that takes newcomers
  caf::scoped_actor self_;
};

}  // namespace troupe::actors
