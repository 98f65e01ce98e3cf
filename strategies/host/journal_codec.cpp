#include "strategies/host/journal_codec.hpp"

#include <bit>
#include <charconv>
#include <concepts>
#include <span>
#include <string>
#include <type_traits>

#include <fmt/format.h>

namespace troupe::strategies {
namespace {

// One function `fields(archive, event)` per event lists its fields in order. Writer and reader both use it, so they cannot differ.

class Writer {
 public:
  explicit Writer(std::vector<std::byte>& to) noexcept : to_(to) {}

  template <std::unsigned_integral T>
  void operator()(const T& value) {
    for (std::size_t i = 0; i < sizeof(T); ++i) to_.push_back(static_cast<std::byte>(value >> (8 * i)));
  }
  void operator()(const float& value) { (*this)(std::bit_cast<std::uint32_t>(value)); }
  void operator()(const double& value) { (*this)(std::bit_cast<std::uint64_t>(value)); }
  void operator()(const int& value) { (*this)(static_cast<std::uint32_t>(value)); }
  void operator()(const bool& value) { (*this)(static_cast<std::uint8_t>(value)); }
  template <class E>
  requires std::is_enum_v<E>
  void operator()(const E& value, E) { (*this)(static_cast<std::underlying_type_t<E>>(value)); }
  void operator()(const Membership& membership) {
    (*this)(membership.epoch);
    (*this)(static_cast<std::uint32_t>(membership.size()));
    for (const auto worker : membership.workers) (*this)(worker);
  }

 private:
  std::vector<std::byte>& to_;
};

/// After the first invalid value, ok() is false and further values are not read.
class Reader {
 public:
  explicit Reader(std::span<const std::byte> from) noexcept : from_(from) {}
  [[nodiscard]] bool ok() const noexcept { return ok_; }
  [[nodiscard]] bool at_end() const noexcept { return from_.empty(); }

  template <std::unsigned_integral T>
  void operator()(T& value) {
    if (from_.size() < sizeof(T)) ok_ = false;
    if (!ok_) return;
    value = 0;
    for (std::size_t i = 0; i < sizeof(T); ++i) value |= static_cast<T>(static_cast<T>(from_[i]) << (8 * i));
    from_ = from_.subspan(sizeof(T));
  }
  void operator()(float& value) { value = std::bit_cast<float>(bits<std::uint32_t>()); }
  void operator()(double& value) { value = std::bit_cast<double>(bits<std::uint64_t>()); }
  void operator()(int& value) {
    value = static_cast<int>(bits<std::uint32_t>());
    if (value < 0) ok_ = false;
  }
  void operator()(bool& value) {
    const auto byte = bits<std::uint8_t>();
    if (byte > 1) ok_ = false;
    value = byte == 1;
  }
  template <class E>
  requires std::is_enum_v<E>
  void operator()(E& value, E last) {
    const auto number = bits<std::underlying_type_t<E>>();
    if (number > static_cast<std::underlying_type_t<E>>(last)) ok_ = false;
    value = static_cast<E>(number);
  }
  void operator()(Membership& membership) {
    (*this)(membership.epoch);
    const auto count = bits<std::uint32_t>();
    if (count > from_.size() / sizeof(WorkerId)) ok_ = false;  // before any allocation
    if (!ok_) return;
    membership.workers.resize(count);
    for (std::size_t i = 0; i < count; ++i) {
      (*this)(membership.workers[i]);
      if (i > 0 && membership.workers[i] <= membership.workers[i - 1]) ok_ = false;
    }
  }

 private:
  template <class T>
  T bits() {
    T value{};
    (*this)(value);
    return value;
  }
  std::span<const std::byte> from_;
  bool ok_ = true;
};

// ---- fields, in the order of the document

template <class A, class E>
requires std::same_as<std::remove_const_t<E>, Started>
void fields(A& a, E& e) { a(e.step); }
template <class A, class E>
requires std::same_as<std::remove_const_t<E>, BucketReady>
void fields(A& a, E& e) { a(e.step), a(e.bucket), a(e.buckets); }
template <class A, class E>
requires std::same_as<std::remove_const_t<E>, StepDone>
void fields(A& a, E& e) {
  a(e.step), a(e.epoch), a(e.optimizer.kind, core::kOptimizers.back().kind);
  a(e.optimizer.lr), a(e.optimizer.momentum), a(e.optimizer.weight_decay), a(e.optimizer.decay);
  a(e.optimizer.epsilon), a(e.optimizer.clip_value), a(e.optimizer.clip_norm), a(e.optimizer.t);
}
template <class A, class E>
requires std::same_as<std::remove_const_t<E>, Stopped>
void fields(A& a, E& e) { a(e.step); }
template <class A, class E>
requires std::same_as<std::remove_const_t<E>, Replied>
void fields(A& a, E& e) { a(e.exchange), a(e.shard), a(e.version), a(e.min_clock); }
template <class A, class E>
requires std::same_as<std::remove_const_t<E>, ExchangeDone>
void fields(A& a, E& e) { a(e.exchange), a(e.dropped); }
template <class A, class E>
requires std::same_as<std::remove_const_t<E>, PeerMessageArrived>
void fields(A& a, E& e) { a(e.from), a(e.weight), a(e.slot.kind, SlotKind::payload), a(e.slot.index); }
template <class A, class E>
requires std::same_as<std::remove_const_t<E>, SendSkipped>
void fields(A& a, E& e) { a(e.to), a(e.weight); }
template <class A, class E>
requires std::same_as<std::remove_const_t<E>, MembershipChanged>
void fields(A& a, E& e) { a(e.membership); }
template <class A, class E>
requires std::same_as<std::remove_const_t<E>, DeadlinePassed>
void fields(A& a, E& e) { a(e.id); }
template <class A, class E>
requires std::same_as<std::remove_const_t<E>, Request>
void fields(A& a, E& e) {
  a(e.id), a(e.worker), a(e.exchange), a(e.kind, Transfer::push_pull), a(e.clock), a(e.version), a(e.epoch), a(e.lr);
}

// ---- kinds, in the order of the variants

constexpr std::uint16_t kFirstWorker = static_cast<std::uint16_t>(EventKind::started);
constexpr std::uint16_t kFirstServer = static_cast<std::uint16_t>(EventKind::request);
static_assert(kFirstWorker + std::variant_size_v<WorkerEvent> - 1 ==
              static_cast<std::uint16_t>(EventKind::worker_deadline));
static_assert(kFirstServer + std::variant_size_v<ServerEvent> - 1 ==
              static_cast<std::uint16_t>(EventKind::server_deadline));

template <class Event>
core::JournalRecord encode_as(std::uint16_t first, std::uint32_t member, const Event& event) {
  core::JournalRecord record{static_cast<std::uint16_t>(first + event.index()), {}};
  Writer writer(record.payload);
  writer(member);
  std::visit([&](const auto& e) { fields(writer, e); }, event);
  return record;
}

/// Sets `event` to the alternative `index`, with default values.
template <class Event, std::size_t I = 0>
bool choose(Event& event, std::size_t index) {
  if constexpr (I == std::variant_size_v<Event>) {
    return false;
  } else {
    if (index != I) return choose<Event, I + 1>(event, index);
    event.template emplace<I>();
    return true;
  }
}

template <class Event>
core::Result<void> decode_as(const char* rule, std::uint16_t first, const core::JournalRecord& record,
                             std::uint32_t& member, Event& event) {
  if (record.kind < first || !choose(event, record.kind - first)) {
    return core::fail(core::Errc::corrupt,
                      fmt::format("journal: record kind {:#06x} is not an event of a {} rule", record.kind, rule));
  }
  Reader reader(record.payload);
  reader(member);
  std::visit([&](auto& e) { fields(reader, e); }, event);
  if (reader.ok() && reader.at_end()) return {};
  return core::fail(
      core::Errc::corrupt,
      fmt::format("journal: record kind {:#06x} with {} bytes is malformed: written by another version, or damaged",
                  record.kind, record.payload.size()));
}

}  // namespace

bool is_worker_event(std::uint16_t kind) noexcept {
  return kind >= kFirstWorker && kind < kFirstWorker + std::variant_size_v<WorkerEvent>;
}
bool is_server_event(std::uint16_t kind) noexcept {
  return kind >= kFirstServer && kind < kFirstServer + std::variant_size_v<ServerEvent>;
}

core::JournalRecord encode(WorkerId worker, const WorkerEvent& event) { return encode_as(kFirstWorker, worker, event); }
core::JournalRecord encode(ShardId shard, const ServerEvent& event) { return encode_as(kFirstServer, shard, event); }

core::Result<WorkerRecord> decode_worker_event(const core::JournalRecord& record) {
  WorkerRecord decoded;
  return decode_as("worker", kFirstWorker, record, decoded.worker, decoded.event).map([&] { return decoded; });
}

core::Result<ServerRecord> decode_server_event(const core::JournalRecord& record) {
  ServerRecord decoded;
  return decode_as("server", kFirstServer, record, decoded.shard, decoded.event).map([&] { return decoded; });
}

// Per event: the kind in four hexadecimal digits, the payload in two for each byte, a dot.

std::string to_text(const std::vector<WorkerEvent>& events) {
  std::string text;
  for (const auto& event : events) {
    const auto record = encode(0, event);
    text += fmt::format("{:04x}", record.kind);
    for (const auto byte : record.payload) text += fmt::format("{:02x}", std::to_integer<unsigned>(byte));
    text += '.';
  }
  return text;
}

core::Result<std::vector<WorkerEvent>> events_from_text(std::string_view text) {
  std::vector<WorkerEvent> events;
  while (!text.empty()) {
    const auto word = text.substr(0, text.find('.'));
    core::JournalRecord record;
    bool good = word.size() < text.size() && word.size() >= 4 && word.size() % 2 == 0;
    const auto number = [&](std::size_t at, std::size_t digits, auto& value) {
      const auto* end = word.data() + at + digits;
      good = good && std::from_chars(word.data() + at, end, value, 16).ptr == end;
    };
    if (good) number(0, 4, record.kind);
    for (std::size_t at = 4; good && at < word.size(); at += 2) {
      std::uint8_t byte = 0;
      number(at, 2, byte);
      record.payload.push_back(static_cast<std::byte>(byte));
    }
    if (!good) return core::fail(core::Errc::corrupt, fmt::format("\"{}\" is no list of events", text));
    auto decoded = decode_worker_event(record);
    if (!decoded) return tl::unexpected(decoded.error());
    events.push_back(std::move(decoded->event));
    text.remove_prefix(word.size() + 1);
  }
  return events;
}

}  // namespace troupe::strategies
