/// The number of a hostile peer's messages and their random contents. All tests of this folder together send
/// TROUPE_HOSTILE_MESSAGES messages (`scripts/test --hostile N`); the default suits a test run. Dice prints TROUPE_HOSTILE_SEED.
#pragma once

#include <unistd.h>

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <limits>
#include <string>

#include "core/random.hpp"

namespace troupe::hostile {

[[nodiscard]] inline std::uint64_t number_of(const char* name, std::uint64_t usual) {
  const char* text = std::getenv(name);
  return text && *text ? std::strtoull(text, nullptr, 10) : usual;
}

/// One test's share of all messages: `parts` hundredths.
[[nodiscard]] inline std::uint64_t messages(std::uint64_t parts) {
  return (number_of("TROUPE_HOSTILE_MESSAGES", 20'000) * parts + 99) / 100;
}

/// Random choices of a test, drawn from its seed. Prints the seed. One thread.
class Dice {
 public:
  explicit Dice(const char* test) : seed_(number_of("TROUPE_HOSTILE_SEED", 1)), random_(seed_, core::Purpose::test, 0) {
    std::printf("%s: seed %llu\n", test, static_cast<unsigned long long>(seed_));
  }
  [[nodiscard]] std::uint64_t below(std::uint64_t bound) { return bits() % bound; }
  [[nodiscard]] bool one_in(std::uint64_t bound) { return below(bound) == 0; }
  [[nodiscard]] std::uint64_t bits() { return std::uint64_t{random_.bits()} << 32 | random_.bits(); }
  /// A bound of T's range, a value near one, or any value.
  template <class T>
  [[nodiscard]] T number() {
    switch (below(6)) {
      case 0: return T{0};
      case 1: return T{1};
      case 2: return static_cast<T>(~T{0});
      case 3: return static_cast<T>(T{1} << below(8 * sizeof(T)));
      case 4: return static_cast<T>(below(300));
      default: return static_cast<T>(bits());
    }
  }
  /// A double that CAF 0.17 can write: its serialiser does not terminate on infinity and changes NaN to another number.
  [[nodiscard]] double finite() {
    const double value = real();
    return std::isfinite(value) ? value : -1;
  }
  [[nodiscard]] double real() {
    using Limits = std::numeric_limits<double>;
    static constexpr double kOdd[] = {0,
                                      -0.0,
                                      1,
                                      -1,
                                      0.5,
                                      1e-320,
                                      1e300,
                                      3e38,
                                      2,
                                      1e18,
                                      -1e300,
                                      Limits::infinity(),
                                      -Limits::infinity(),
                                      Limits::quiet_NaN()};
    return kOdd[below(std::size(kOdd))];
  }
  template <class Container>
  [[nodiscard]] auto& any_of(Container& container) {
    return container[below(std::size(container))];
  }
  /// Changes some bytes, and may cut or lengthen the text.
  void damage(std::string& bytes) {
    for (std::uint64_t k = 0, changes = 1 + below(4); k < changes && !bytes.empty(); ++k)
      bytes[below(bytes.size())] = static_cast<char>(number<std::uint8_t>());
    if (one_in(4)) bytes.resize(below(bytes.size() + 1));
    if (one_in(8)) bytes.append(below(300), static_cast<char>(bits()));
  }

 private:
  std::uint64_t seed_;
  core::Random random_;
};

/// Bytes by which resident memory may grow while arbitrary messages arrive. AddressSanitizer keeps freed memory for a while: up to 256 MiB.
#ifdef __SANITIZE_ADDRESS__
inline constexpr std::uint64_t kMostGrowth = std::uint64_t{320} << 20;
#else
inline constexpr std::uint64_t kMostGrowth = std::uint64_t{64} << 20;
#endif

/// Resident memory of a process in bytes.
[[nodiscard]] inline std::uint64_t resident(int process = ::getpid()) {
  std::ifstream statm("/proc/" + std::to_string(process) + "/statm");
  std::uint64_t pages = 0, there = 0;
  statm >> pages >> there;
  return there * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
}

}  // namespace troupe::hostile
