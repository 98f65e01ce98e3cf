/// The node actor, one per process that waits for runs (`troupe node`, and every rank but the first under mpirun): says what the host
/// has and how it is doing, and makes the sites of runs here (site.hpp), each on a thread of its own. A site ends with its run: when
/// it is halted, or when the coordinator or a worker of it is gone. Whoever is to take a place here takes it when who had it before,
/// and may not know yet that it was lost, has ended: nothing of what that one says comes after the successor's first word.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "actors/protocol/handles.hpp"
#include "actors/deployment/node_ground.hpp"
#include "core/clock.hpp"
#include "transport/security/tls_files.hpp"

namespace troupe::actors {

struct NodeSetup {
  std::string version;                          // of the program: runs of another one are refused
  std::string data_host;                        // where endpoints listen
  security::TlsFiles tls{};                     // of endpoints
  std::shared_ptr<NodeGrounds> grounds;         // of the runs here
  std::function<void(const std::string&)> log;  // one line, from any thread
  /// Whoever had sites made here has ended, or (`lost`) its connection has; from the node's thread.
  std::function<void(bool lost)> gone{};
};

class NodeBody;
struct NodeState {
  std::unique_ptr<NodeBody> body;
  static inline const char* name = "node";
  NodeState();
  ~NodeState();
};

[[nodiscard]] NodeActor::behavior_type node(NodeActor::stateful_pointer<NodeState> self, NodeSetup setup);

}  // namespace troupe::actors
