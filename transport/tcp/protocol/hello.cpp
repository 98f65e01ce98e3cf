#include "transport/tcp/protocol/hello.hpp"

#include <algorithm>
#include <cstring>

namespace troupe::transport {
namespace {

constexpr std::size_t kEagerWindow = std::size_t{1} << 20;

void put(std::vector<std::byte>& out, const void* data, std::size_t size) {
  const auto* bytes = static_cast<const std::byte*>(data);
  out.insert(out.end(), bytes, bytes + size);
}

void put(std::vector<std::byte>& out, const std::string& text) {
  const auto size = static_cast<std::uint32_t>(text.size());
  put(out, &size, sizeof size);
  put(out, text.data(), text.size());
}

/// Reads from the front of a span. After a failure all results are empty and `good` is false.
struct Reader {
  std::span<const std::byte> rest;
  bool good = true;

  std::span<const std::byte> take(std::size_t size) {
    good = good && size <= rest.size();
    if (!good) return {};
    const auto taken = rest.first(size);
    rest = rest.subspan(size);
    return taken;
  }
  template <class Number>
  Number number() {
    Number value{};
    const auto bytes = take(sizeof value);
    if (good) std::memcpy(&value, bytes.data(), sizeof value);
    return value;
  }
  SessionToken token() {
    SessionToken read;
    const auto from = take(read.bytes.size());
    std::ranges::copy(from, read.bytes.begin());
    return read;
  }
  std::string text() {
    const auto bytes = take(number<std::uint32_t>());
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  }
};

bool printable(const std::string& text) {
  return std::ranges::all_of(text, [](char c) { return c >= ' ' && c <= '~'; });
}

}  // namespace

Window window_of(const Credit& credit) noexcept { return {credit.messages, std::min(credit.bytes, kEagerWindow)}; }

std::vector<std::byte> encode(const Hello& hello) {
  std::vector<std::byte> out;
  put(out, &hello.version, sizeof hello.version);
  put(out, &hello.attempt, sizeof hello.attempt);
  put(out, &hello.connection, sizeof hello.connection);
  put(out, hello.token.bytes.data(), hello.token.bytes.size());
  put(out, hello.peer_token.bytes.data(), hello.peer_token.bytes.size());
  put(out, &hello.received, sizeof hello.received);
  put(out, &hello.window.messages, sizeof hello.window.messages);
  put(out, &hello.window.eager_bytes, sizeof hello.window.eager_bytes);
  put(out, hello.from);
  put(out, hello.to);
  return out;
}

core::Result<Hello> decode_hello(std::span<const std::byte> bytes) {
  Reader reader{bytes};
  Hello hello;
  hello.version = reader.number<std::uint32_t>();
  hello.attempt = reader.number<std::uint64_t>();
  hello.connection = reader.number<std::uint64_t>();
  hello.token = reader.token();
  hello.peer_token = reader.token();
  hello.received = reader.number<std::uint64_t>();
  hello.window.messages = reader.number<std::uint64_t>();
  hello.window.eager_bytes = reader.number<std::uint64_t>();
  hello.from = reader.text();
  hello.to = reader.text();
  if (!reader.good || hello.window.messages == 0 || hello.token.empty() || !printable(hello.from) ||
      !printable(hello.to))
    return core::fail(core::Errc::corrupt, "invalid hello");
  return hello;  // further bytes belong to a later version
}

}  // namespace troupe::transport
