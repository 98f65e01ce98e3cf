/// A proxy between callers and one endpoint. It carries their connections and resets them at any byte of either
/// direction. Thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <mutex>
#include <thread>

#include "peers.hpp"

namespace troupe::transport::testing {

class Breaker {
 public:
  /// How many bytes one direction of a new connection carries before the reset. Called by one thread.
  using Draw = std::function<std::size_t()>;
  /// Listens at `front`, with the port of `behind`; `behind` listens at `back`.
  Breaker(const Party& behind, const char* front, const char* back, Draw draw);
  ~Breaker();

  /// Resets all connections and carries no other until release(): callers connect and get no answer.
  void hold();
  void release();
  [[nodiscard]] std::size_t resets();

 private:
  struct Carried {
    RawSocket in, out;
    std::size_t left[2];  // bytes until the reset, from `in` and from `out`
  };
  void run();
  /// False: the connection is reset or has ended.
  [[nodiscard]] bool carry(Carried& carried, int side);
  void reset(Carried& carried);
  void wake() const;

  const RawSocket listening_;
  const char* const back_;
  const std::uint16_t port_;
  const Draw draw_;
  const int wake_;
  std::mutex mutex_;
  bool held_ = false;
  bool stopped_ = false;
  std::size_t resets_ = 0;
  std::list<Carried> carried_;
  std::thread thread_;
};

/// Two endpoints that reach each other only through breakers, in both directions.
struct BrokenPair {
  BrokenPair(TcpOptions options, Credit credit, Breaker::Draw draw);
  void hold();
  void release();
  [[nodiscard]] std::size_t resets();
  Party a, b;
  Breaker to_a, to_b;
  Pair pair;
};

}  // namespace troupe::transport::testing
