/// The node actor, one per process that waits for runs (`troupe node`, and every rank but the first under mpirun). It reports the host's
/// resources and load, and makes sites of runs here (site.hpp), each on its own thread. A site ends when it is halted, or when the
/// coordinator or one of its workers is lost. A replacement site starts only after the old one has terminated, which may not know yet
/// that it was lost: no message of the old site follows the first message of the new one.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "actors/deployment/run_context.hpp"
#include "actors/protocol/handles.hpp"
#include "core/clock.hpp"
#include "transport/security/tls_files.hpp"

namespace troupe::actors {

struct NodeSetup {
  std::string version;                          // of the program: runs of another version are refused
  std::string data_host;                        // where endpoints listen
  security::TlsFiles tls{};                     // of endpoints
  std::shared_ptr<RunContextCache> contexts;    // contexts of the runs here
  std::function<void(const std::string&)> log;  // one line, from any thread
  /// The actor that ordered sites here has ended, or (`lost`) its connection has. Called on the node's thread.
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
