/// The frames of the shm protocol: one packet (SOCK_SEQPACKET) per frame, a header and at most kShmEagerBytes of payload, in the
/// host's byte order. Internal to shm. Thread rule: plain values.
///
/// Either side opens a pair's socket and sends hello; the other side answers with welcome when it has called connect() too. Then,
/// for each message, numbered by its sender from 1 upwards:
///
///     message{id, tag} payload                the payload is in the frame …
///     offer{id, tag, size, address}           … or the receiver fetches it when it has a receive:
///         from that address, if it can;       else it sends:
///         pull{id} · bounce (once, with the descriptor of the window) · chunk{id, slot, size} · free{slot} · …
///     done{id, size of the receive}           a size other than the message's: both sides fail as corrupt
///     cancel{id, tag} · cancelled{id}         no answer when the message was matched: done follows or was sent
///     bye reason                              the last frame
///
/// An arena is requested over a socket of its own: attach{id = its number}. The answer is arena{size = its floats} with its
/// descriptor, or without one when it is not exposed.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "transport/shm/protocol/address.hpp"

namespace troupe::transport {

/// Up to this size the kernel's two copies through a socket cost less than a read from another process.
inline constexpr std::size_t kShmEagerBytes = 8192;

enum class ShmFrameKind : std::uint32_t {
  hello = 1,
  welcome,
  message,
  offer,
  pull,
  bounce,
  chunk,
  free,
  done,
  cancel,
  cancelled,
  bye,
  attach,
  arena,
};

struct ShmHeader {
  std::uint32_t magic = kMagic;
  ShmFrameKind kind{};
  std::uint64_t id = 0;
  std::uint64_t tag = 0;
  std::uint64_t size = 0;     // bytes of the message or chunk; floats of an arena
  std::uint64_t address = 0;  // offer: in the sender's address space; chunk, free: the slot

  static constexpr std::uint32_t kMagic = 0x31'4d'48'53;  // "SHM1": the protocol version
};
static_assert(sizeof(ShmHeader) == 40 && std::is_trivially_copyable_v<ShmHeader>);

/// Payload of hello, welcome and attach.
struct ShmIntroduction {
  ShmToken secret_of_receiver{};
  ShmToken id_of_sender{};
  ShmToken secret_of_sender{};
  std::uint64_t messages = 0;  // credit: the sender's limit of outstanding messages
  std::uint64_t probe_address =
      0;  // of probe_value in the sender's memory: a peer that can read it fetches payloads itself
  std::uint64_t probe_value = 0;
};
static_assert(std::is_trivially_copyable_v<ShmIntroduction>);

}  // namespace troupe::transport
