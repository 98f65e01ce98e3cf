/// The nodes (`troupe node`) that a service knows: their addresses in `<run.dir>/.service/nodes.json`, and how each is doing, asked every few
/// seconds by a thread per node, so that one that does not answer delays no other. Thread-safe.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "core/clock.hpp"
#include "core/error.hpp"

namespace troupe::service {

struct NodeGpu {
  std::string name;
  std::optional<double> load;                 // 0 to 1
  std::uint64_t memory = 0, memory_free = 0;  // bytes
  bool operator==(const NodeGpu&) const = default;
};

/// What a node answers.
struct NodeReport {
  std::uint32_t cores = 0;
  double load = 0;                            // of the last minute, cores
  std::uint64_t memory = 0, memory_free = 0;  // bytes
  std::vector<NodeGpu> gpus;
  std::vector<std::string> runs;  // names
  bool operator==(const NodeReport&) const = default;
};

struct NodeRow {
  std::string address;
  bool alive = false;
  std::optional<double> heard_s;     // seconds since its last answer; nothing: it has never answered
  std::optional<NodeReport> report;  // its last answer
  std::string error;                 // why the last question failed; empty: it did not
};

/// Asks a node. Blocks, at most until `stop` is requested or a deadline of its own, below NodeRegistry::kDeadAfter. Called on several threads.
using AskNode = std::function<core::Result<NodeReport>(const std::string& address, const std::stop_token& stop)>;

struct NodeOptions {
  std::string file;  // nodes.json
  AskNode ask;
  const core::Clock* clock = nullptr;
  std::chrono::milliseconds period{5000};              // between an answer and the next question
  std::function<void(const NodeRow&)> on_change = {};  // after each question, on any thread; must not call back
};

class NodeRegistry {
 public:
  /// A node is dead after so long a silence, or as soon as nothing listens at its address (Errc::peer_lost).
  static constexpr std::chrono::seconds kDeadAfter{21};
  static constexpr std::size_t kMostNodes = 256;

  /// Reads the file, if it is there. Errc::corrupt, io.
  [[nodiscard]] static core::Result<std::unique_ptr<NodeRegistry>> open(NodeOptions options);
  /// Waits for the questions under way, which are told to stop.
  ~NodeRegistry();
  NodeRegistry(const NodeRegistry&) = delete;
  NodeRegistry& operator=(const NodeRegistry&) = delete;

  /// Errc::config: no address, one that is known already, or too many; io, no_space: it could not be stored.
  [[nodiscard]] core::Result<NodeRow> add(const std::string& address);
  /// False: it is not known. Errc::io, no_space.
  [[nodiscard]] core::Result<bool> remove(const std::string& address);
  /// By address.
  [[nodiscard]] std::vector<NodeRow> rows() const;

 private:
  struct Node {
    std::optional<core::Duration> heard;
    std::optional<NodeReport> report;
    bool refused = false;
    std::string error;
    std::jthread thread;
  };
  explicit NodeRegistry(NodeOptions options) : options_(std::move(options)) {}
  void start(const std::string& address);
  void follow(const std::string& address, const std::stop_token& stop);
  NodeRow row_of(const std::string& address, const Node& node) const;
  core::Result<void> write(const std::vector<std::string>& addresses) const;
  std::vector<std::string> addresses() const;

  NodeOptions options_;
  mutable std::mutex mutex_;  // guards nodes_
  std::condition_variable_any changed_;
  std::map<std::string, Node> nodes_;
};

}  // namespace troupe::service
