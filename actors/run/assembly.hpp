/// Spawns the members of a run and ends them: decides order, handle, thread and memory of each. Used by run.cpp; knows nothing of
/// epochs or file formats.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <stop_token>

#include "actors/control/system.hpp"
#include "actors/coordinator/coordinator.hpp"
#include "actors/deployment/rejoin_manager.hpp"
#include "actors/deployment/site.hpp"
#include "actors/protocol/vocabulary.hpp"
#include "actors/recorder/recorder.hpp"
#include "actors/run/launch.hpp"
#include "nn/backend.hpp"
#include "nn/checkpoint/metered_files.hpp"

namespace troupe::actors {

/// The start state of a run.
struct Beginning {
  std::shared_ptr<const Checkpoint> checkpoint;   // null: a new run with fresh weights
  std::string checkpoint_file;                    // its path; with run.init set after make_sites()
  std::shared_ptr<const RunDirectory> directory;  // in a new run set after make_sites(), as disk and checkpoints
  std::shared_ptr<nn::MeteredFiles> disk;         // the checkpoints are written through it
  std::shared_ptr<nn::CheckpointStore> checkpoints;
  std::vector<Note> notes;
  std::optional<nn::Plan> plan;            // of a resumed run
  std::optional<ExchangePlan> exchange{};  // of its last session
  bool complete = false;                   // all epochs are trained
};

/// The actors of a run: its sites in this process, its sites at nodes, and its supervisors. One thread. Its actors may end after it: the
/// RunSpec, backend, memory and clock must outlive the actor system, whose destructor waits for the actors.
class Assembly {
 public:
  /// `stop` ends the waits of make_sites().
  Assembly(const SiteContext& context, Launch launch, std::stop_token stop = {});
  ~Assembly();
  Assembly(const Assembly&) = delete;
  Assembly& operator=(const Assembly&) = delete;

  /// Spawns the members and compiles the replicas, each on its worker's thread. Does not use the run directory of `beginning`. After an
  /// Error the destructor ends all spawned actors. After Errc::interrupted it does not wait for nodes: they finish their current step and
  /// end their sites by themselves.
  [[nodiscard]] core::Result<void> make_sites(const Beginning& beginning);
  /// Spawns the supervisors and begins the run. Errors: those of RunDirectory::write_plan.
  [[nodiscard]] core::Result<CoordinatorActor> begin(const Beginning& beginning, const report::ConsoleOptions& console);
  /// The recorder writes and shows `end`; the Error says why it could not.
  [[nodiscard]] core::Result<void> finish(const RunEnd& end);
  /// Ends all actors. `in_order`: the run is complete, or was stopped with a checkpoint; programs may save what they have, and Errc::program
  /// says that one failed after its last batch.
  [[nodiscard]] core::Result<void> end_actors(bool in_order);

 private:
  /// A site, here or at a node.
  struct SiteHandle {
    std::uint32_t number = 0;
    std::unique_ptr<Site> here{};
    const Node* node = nullptr;
    NodeActor asked{};  // proxies, like `there`: they answer when the process is lost
    SiteActor there{};
    SiteMembers members{};
  };
  [[nodiscard]] core::Result<void> open_sites(const Beginning& beginning);
  [[nodiscard]] core::Result<void> prepare_sites();
  [[nodiscard]] bool is_whole(const SiteHandle& handle) const;
  [[nodiscard]] core::Result<void> ask_for_mapping();
  [[nodiscard]] core::Result<void> choose_reductions(const Beginning& beginning);
  void sum_without_mapping();
  [[nodiscard]] core::Result<void> join_devices();
  /// Passes the answers of the sites to which `asked` applies to `told`, as they come. The first error ends it: the others may wait for
  /// that site.
  [[nodiscard]] core::Result<void> order_all(
      const MeasureOrder& order, const std::function<bool(const SiteHandle&)>& asked,
      const std::function<core::Result<void>(SiteHandle&, const Measured&)>& told);
  [[nodiscard]] core::Result<std::vector<exchange::Timing>> measure(const std::vector<exchange::Algorithm>& algorithms);
  /// Whether one backend plan serves all workers: a plan is for one batch size.
  [[nodiscard]] bool one_plan() const { return spec_.settings->data.batch.size() == 1; }
  [[nodiscard]] SiteOrder order_for(const SiteHandle& handle, bool resumed) const;
  [[nodiscard]] core::Error at(const SiteHandle& handle, core::Error error) const;
  [[nodiscard]] core::Error no_answer(const SiteHandle& handle, const std::string& what, const caf::error& error) const;
  void spawn_supervisors(const Beginning& beginning, const report::ConsoleOptions& console);
  void spawn_evaluator();
  void spawn_recorder(const Beginning& beginning, const report::ConsoleOptions& console,
                      const MemberMessageChecks& checks);
  [[nodiscard]] CoordinatorSetup coordinator_setup(const Beginning& beginning, const MemberMessageChecks& checks) const;
  [[nodiscard]] std::string run_plan() const;
  [[nodiscard]] MemberMessageChecks member_message_checks() const;
  [[nodiscard]] const Node* node_of(std::uint32_t worker) const;
  [[nodiscard]] core::Duration step_silence() const;
  [[nodiscard]] std::string name_of(std::uint32_t worker) const;
  [[nodiscard]] RejoinManagerActor spawn_rejoin_manager();
  void begin_sites();
  /// The failure of a program after its last batch; empty: none.
  std::string halt(bool in_order = false);

  SiteContext context_;
  const RunSpec& spec_;
  Launch launch_;
  const std::stop_token stop_;
  std::shared_ptr<const StartState> start_;  // until the run begins
  ExchangePlan exchange_;
  std::string
      not_mapped_;  // why processes do not map each other's device memory; empty: they do, or nothing is there to map
  std::shared_ptr<const nn::Layout> layout_;
  nn::Plan made_plan_;                // worker 0's
  std::uint64_t data_ = 0;            // fingerprint of the data set; only in a run over nodes
  std::vector<SiteHandle> sites_;     // by site
  std::vector<std::string> pinning_;  // the cores of the workers, by site
  SiteAddresses addresses_;
  CoordinatorActor coordinator_;
  RecorderActor recorder_;
  std::shared_ptr<nn::MeteredFiles> disk_;  // the recorder's
  EvaluatorActor evaluator_;
  std::stop_source over_;              // for an evaluation beside training that has not ended
  RejoinManagerActor rejoin_manager_;  // of a run over nodes that takes newcomers
  caf::scoped_actor self_;
};

}  // namespace troupe::actors
