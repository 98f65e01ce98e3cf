/// One rank of an exchange benchmark: a process with an endpoint, a vector, and the other ranks as peers. Ranks find each other through a
/// shared folder (network namespaces of one machine share its files): each writes its addresses and reads those of the others.
///
/// Not thread-safe; another thread may write the vector while no exchange uses it. Every wait ends with Errc::timeout after `patience`
/// without progress. Only files in the folder stay behind.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "core/buffer.hpp"
#include "core/clock.hpp"
#include "core/error.hpp"
#include "transport/exchange/arenas.hpp"
#include "transport/exchange/collectives/collective.hpp"
#include "transport/registry/endpoint_registry.hpp"

namespace troupe::bench {

struct RankOptions {
  std::size_t rank = 0;
  std::size_t ranks = 2;
  std::filesystem::path folder;  // where the ranks find each other; empty at the start
  std::string endpoint = "shm";
  std::string algorithm = "asa";       // direct reduce-scatter + allgather
  std::string half = "fp16";           // asa16
  std::vector<std::uint32_t> hosts{};  // by rank, for hierarchical; empty: all on one
  std::size_t floats = 60'965'224;     // AlexNet's
  exchange::Chunking chunks{};
  std::string ucx_transports{};  // as UCX_TLS
  transport::TcpOptions tcp{};   // listen address and certificate
  std::chrono::seconds patience{120};
};

/// Adds --rank, --ranks and so on; under mpirun it sets the defaults of rank and ranks.
void declare(CLI::App& app, RankOptions& options);

class Rank {
 public:
  /// Returns when all ranks are connected. Errors: the endpoint's, and Errc::io for the folder.
  [[nodiscard]] static core::Result<std::unique_ptr<Rank>> meet(RankOptions options);
  ~Rank();
  Rank(const Rank&) = delete;
  Rank& operator=(const Rank&) = delete;

  [[nodiscard]] const RankOptions& options() const noexcept { return options_; }
  [[nodiscard]] core::Span vector() noexcept { return vector_.view().first(options_.floats); }
  /// The mean over the ranks of `part` of the vector, by options().algorithm. Concurrent exchanges differ in (exchange, shard); shard is
  /// at most transport::kMaxShard.
  [[nodiscard]] std::unique_ptr<exchange::Collective> make_mean(core::Slice part, std::uint32_t exchange,
                                                                std::uint16_t shard, exchange::Collective::Done done);
  /// Delivers completions until `done`. `fd`: a second descriptor beside the completion queue's; `done` is checked again when it is
  /// readable. -1: none.
  [[nodiscard]] core::Result<void> drive(const std::function<bool()>& done, int fd = -1);
  /// One complete exchange of `part`.
  [[nodiscard]] core::Result<void> mean(core::Slice part, std::uint32_t exchange);
  /// Returns when every rank has made the same number of calls.
  [[nodiscard]] core::Result<void> barrier();

  [[nodiscard]] std::uint64_t bytes_sent() const;  // payload
  /// Bytes that this rank sends for one mean of so many floats, by collective_bytes().
  [[nodiscard]] std::uint64_t bytes_of_mean(std::size_t floats) const;

 private:
  explicit Rank(RankOptions options) : options_(std::move(options)) {}
  void close();
  bool deliver();  // false: no completion
  [[nodiscard]] core::Result<void> open();
  [[nodiscard]] core::Result<void> connect();
  [[nodiscard]] core::Result<void> write(const std::string& what, const std::string& text) const;
  [[nodiscard]] core::Result<std::string> read(const std::string& what, std::size_t rank) const;
  [[nodiscard]] exchange::CollectiveTask task() const;

  RankOptions options_;
  core::SteadyClock clock_{};
  core::HostAllocator host_memory_{};
  std::shared_ptr<transport::CompletionQueue> queue_;
  std::shared_ptr<transport::Endpoint> endpoint_;
  std::shared_ptr<exchange::Arenas> arenas_;  // where memory is mapped
  exchange::Scratch scratch_;
  std::unique_ptr<exchange::OperationQueue> operations_;
  core::Buffer vector_;
  exchange::Group group_;
  std::uint32_t barriers_ = 0;
};

}  // namespace troupe::bench
