/// Site 0 of a run: real exchanger, servers and proxies. The test holds the endpoints of the other sites, each with a valid certificate or
/// secret, and plays the coordinator and the recorder. One thread beside the actors' own.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "actors/control/system.hpp"
#include "actors/deployment/site.hpp"
#include "actors/protocol/call_headers.hpp"
#include "tests/actors/small_run.hpp"
#include "transport/exchange/envelope.hpp"
#include "transport/exchange/rpc.hpp"

namespace troupe::hostile {

/// Another site, played by the test: worker k is at site k + 1.
struct RawSite {
  std::shared_ptr<transport::Endpoint> endpoint;
  std::unique_ptr<exchange::OperationQueue> operations;
  std::unique_ptr<exchange::Rpc> calls;  // null: the test sends raw operations
  transport::Peer center{};
};

/// How a vector travels.
struct Wire {
  std::optional<core::HalfKind> half{};
  core::Rounding rounding = core::Rounding::both;
};

class Center {
 public:
  struct Options {
    std::vector<std::string> settings{};  // of a SmallRun
    std::uint32_t workers = 2;
    std::vector<std::uint32_t> server_sites{0};   // by shard
    std::vector<strategies::WorkerId> members{};  // empty: all workers
    std::string endpoint = "inproc";
    std::vector<std::uint32_t> raw{};  // sites without Rpc
  };
  explicit Center(const Options& options);
  ~Center();
  Center(const Center&) = delete;
  Center& operator=(const Center&) = delete;

  [[nodiscard]] RawSite& site(std::uint32_t number) { return sites_.at(number - 1); }
  [[nodiscard]] std::size_t arena_floats() const { return layout_->arena_floats(); }
  [[nodiscard]] std::uint32_t shards() const { return static_cast<std::uint32_t>(actors_.servers.size()); }
  [[nodiscard]] std::size_t shard_floats(strategies::ShardId shard) const;
  [[nodiscard]] caf::actor_system& system() { return system_; }

  /// A valid request of `worker`.
  [[nodiscard]] static actors::ShardMessage request(strategies::WorkerId worker, strategies::Transfer kind,
                                                    strategies::Step clock = 1, strategies::ShardId shard = 0);
  template <class Message>
  [[nodiscard]] std::string header(actors::CallKind kind, const Message& message) {
    return actors::pack_header(system_, kind, message);
  }
  /// Calls site 0 from site `from` and waits for the answer.
  core::Result<std::string> call(std::uint32_t from, const std::string& header, core::Span vector, exchange::Lend lend);
  /// As call(), without waiting. The borrowed vector lives until the call ends.
  void call_on(std::uint32_t from, const std::string& header, std::vector<float> vector, exchange::Lend lend,
               Wire wire = {});
  [[nodiscard]] std::size_t open() const { return open_; }

  /// An honest worker's pull. Returns the shard's current values.
  [[nodiscard]] std::vector<float> pull(strategies::WorkerId worker, strategies::ShardId shard = 0);
  /// An honest worker's push of `value` to all shards.
  void push(strategies::WorkerId worker, float value, strategies::Step clock);

  /// Closes the endpoint of site `number` and announces a membership without its worker, as after a loss. Waits for its calls.
  void lose(std::uint32_t number);

  // Answers the calls that site 0's members make to a server at another site.
  std::function<void(std::uint32_t site, exchange::Rpc::Incoming call)> on_call{};
  /// Site 0's exchanger sends this request to its server. The answer is for a worker elsewhere and is dropped.
  void ask(const actors::ShardMessage& message);
  [[nodiscard]] core::Result<actors::SnapshotTaken> snapshot(strategies::ShardId shard, std::uint64_t id);

  /// Delivers completions of the other sites until `done`; fails the test on a timeout.
  void drive(const std::function<bool()>& done);
  /// As drive(), where actors of site 0 decide `done`. Throws on a timeout.
  void await(const std::function<bool()>& done);
  void poll();

  /// All messages that the coordinator and the recorder have received.
  struct Told {
    std::vector<actors::RunError> troubles;
    std::vector<actors::SiteLost> losses;
    std::vector<std::string> notes;
  };
  [[nodiscard]] const Told& told();

 private:
  void deliver(const std::vector<transport::Completion>& completions);

  tests::SmallRun run_;
  experiment::RunSpec spec_;
  core::SteadyClock clock_;
  core::HostAllocator memory_;
  std::shared_ptr<const nn::Layout> layout_;
  std::shared_ptr<transport::CompletionQueue> queue_;
  actors::SystemConfig config_;
  caf::actor_system system_{config_};
  caf::scoped_actor self_{system_};
  std::unique_ptr<actors::Site> site_;
  actors::ActorDirectory actors_;  // as site 0 sees it
  std::vector<RawSite> sites_;
  std::vector<transport::OperationId> establishing_;
  std::size_t open_ = 0;
  strategies::ExchangeId exchanges_ = 1'000'000;  // of honest workers
  Told told_;
};

}  // namespace troupe::hostile
