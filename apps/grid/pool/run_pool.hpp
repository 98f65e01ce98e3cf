/// Trains runs as child processes (`troupe train`), one at a time in each slot: this machine, several times, or nodes elsewhere. A slot that
/// loses its nodes is left alone for a while; its run can go on in another one. One thread, the one that lives longest (children.hpp).
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "apps/grid/pool/children.hpp"
#include "apps/grid/resolved_grid.hpp"
#include "apps/grid/status_index.hpp"
#include "core/clock.hpp"

namespace troupe::grid {

/// After an interrupt a run finishes its steps and writes a checkpoint; after this time it counts as hung and is killed. A grid
/// without anything else to do waits equally long for runs of other processes, and for nodes.
inline constexpr double kSavingDeadline_s = 600;

struct PoolOptions {
  std::string executable;              // of the children
  std::vector<std::string> slots{""};  // the nodes of each, "h1:4242,h2:4242"; empty text: this machine. At least one
  std::vector<std::string> node_arguments{};        // to reach nodes: --ca FILE …
  bool replan = false;                              // resumed runs make the choices of plan.json anew
  const core::Clock* clock = nullptr;               // outlives the pool
  const std::atomic<int>* save_requests = nullptr;  // when it grows, running children save a checkpoint; null: never
};

class RunPool {
 public:
  /// `directory`: of the grid. The files of children are in it while they train: it is where a run needs space anyway. Errc::io, no_space.
  [[nodiscard]] static core::Result<std::unique_ptr<RunPool>> make(PoolOptions options, std::string directory);
  /// Kills the running children: first let them save (stopping.hpp).
  ~RunPool();
  /// Removes the files of a pool that was killed. REQUIRES that no other one works in `directory`.
  static void remove_leftovers(const std::string& directory);

  /// Whether a slot is free whose nodes are not known to be lost.
  [[nodiscard]] bool has_room() const;
  /// No slot has been of use for kSavingDeadline_s, and none is in use: waiting longer is in vain.
  [[nodiscard]] bool is_hopeless() const;
  /// Begins the run, or resumes it in `directory`; `overrides` (KEY=VALUE) hold for this session of it. A resumed run that comes to other
  /// nodes makes the choices of plan.json anew. REQUIRES has_room(). Errc::io.
  [[nodiscard]] core::Result<void> begin(std::size_t id, const GridRun& run, const std::string& directory,
                                         const std::vector<std::string>& overrides = {});

  struct Ended {
    std::size_t id = 0;
    RunStatus status;  // Status::running: another process trains in the directory now
    double seconds = 0;
    bool resumed = false;
    bool nodes_lost =
        false;  // its nodes, not the run, have failed: it is waiting or interrupted, and can go on elsewhere
  };
  /// Runs that have ended; waits for the first one for `patience`, or until wake_fd is readable. Passes on requests to save first. REQUIRES
  /// count() > 0.
  [[nodiscard]] std::vector<Ended> wait(std::chrono::milliseconds patience, int wake_fd);

  [[nodiscard]] std::size_t count() const noexcept { return children_.count(); }
  void signal(int number) const { children_.signal(number); }
  /// By run: seconds since it began here, and how far it is (progress_of()).
  struct Position {
    std::size_t id = 0;
    double elapsed_s = 0;
    std::string progress;
  };
  [[nodiscard]] std::vector<Position> positions() const;

 private:
  struct Slot {
    std::string nodes;
    std::optional<std::size_t> run{};
    core::Duration free_at{};  // lost nodes are asked again then
    core::Duration patience{};
  };
  struct Running {
    core::Duration since{};
    std::string directory{};  // of a resumed run
    std::string summary{};    // of its session before
    Slot* slot = nullptr;
  };

  RunPool(PoolOptions options, std::string directory, std::string scratch);
  [[nodiscard]] Slot* free_slot();
  [[nodiscard]] Ended ended(Children::End end);
  [[nodiscard]] bool loses_nodes(const Running& running, Ended& ended, bool began);
  [[nodiscard]] std::string scratch_file(std::size_t id, std::string_view extension) const;
  [[nodiscard]] std::string directory_told(std::size_t id) const;

  PoolOptions options_;
  std::string directory_;  // of the grid
  std::string scratch_;
  Children children_;
  std::vector<Slot> slots_;
  std::map<std::size_t, Running> running_;
  std::map<std::size_t, const Slot*> latest_;  // by run
  std::map<std::size_t, int> losses_;          // by run: of nodes while it trained
  core::Duration useful_{};                    // when a slot was last of use
  int saves_ = 0;                              // requests passed on to the runs
};

}  // namespace troupe::grid
