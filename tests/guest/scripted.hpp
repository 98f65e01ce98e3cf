/// Runs of the scripted guest (programs/) under the engine's side. One thread.
#pragma once

#include <array>
#include <chrono>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "guest/backend.hpp"
#include "tests/folder.hpp"

namespace troupe::guest {

struct ScriptedOptions {
  std::chrono::duration<double> silence{120};
  std::chrono::duration<double> start{120};
  std::chrono::duration<double> end{120};
};
/// Two samples, for steps.
inline constexpr std::array<std::int32_t, 2> kSamples{0, 1};
/// The program with these words of programs/script.hpp.
[[nodiscard]] GuestProgram scripted(std::vector<std::string> words, const ScriptedOptions& options = {});

/// A backend of the scripted guest, what it said of itself, and how a worker of it is compiled.
struct ScriptedRun {
  explicit ScriptedRun(const GuestProgram& program);
  /// A worker's replica, with numbers `worker` of 2. `gradients`: whether a strategy reads them.
  [[nodiscard]] core::Result<std::unique_ptr<nn::Replica>> worker(bool gradients, std::uint32_t number = 0) const;
  [[nodiscard]] core::Result<std::unique_ptr<nn::Replica>> evaluator() const;

  std::unique_ptr<GuestBackend> backend;
  core::Result<Description> said;
  std::unique_ptr<nn::Graph> graph;  // null: it has not said what it is
};

/// A batch of these samples. They must outlive it.
[[nodiscard]] nn::Batch batch_of(std::span<const std::int32_t> samples, std::uint64_t lease);
/// The lines of the file that guest `name` ("0", "evaluator") has logged to.
[[nodiscard]] std::vector<std::string> logged(const tests::Folder& folder, const std::string& name);
/// Processes of this one's that run or have not been waited for.
[[nodiscard]] bool has_children();
[[nodiscard]] std::size_t open_descriptors();

}  // namespace troupe::guest
