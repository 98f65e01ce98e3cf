/// What members say to each other over a socket of the shm endpoint: one packet (SOCK_SEQPACKET) per frame, a header and
/// at most kEagerBytes of payload, in the host's byte order. Internal to shm.
///
/// A pair's socket, dialled by either side: hello, answered by welcome when the other side has called connect() too. Then,
/// for each message, numbered by its sender from 1 upwards:
///
///     message{id, tag} payload                the payload is in the frame …
///     offer{id, tag, size, address}           … or the receiver fetches it when it has a receive:
///         from that address, if it can;       else it asks:
///         pull{id} · bounce (once, with the descriptor of the window) · chunk{id, slot, size} · free{slot} · …
///     done{id, size of the receive}           another size than the message's: both sides fail as corrupt
///     cancel{id, tag} · cancelled{id}         no answer when the message was matched: done comes, or has come
///     bye reason                              the last one
///
/// A socket of its own asks for an arena: attach{id = its number}, answered by arena{size = its floats} with its
/// descriptor, or without one when it is not on offer.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "transport/shm/protocol/address.hpp"

namespace troupe::transport {

/// Up to here the kernel's two copies through a socket are cheaper than reaching into another process.
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

  static constexpr std::uint32_t kMagic = 0x31'4d'48'53;  // "SHM1": the version of all that follows
};
static_assert(sizeof(ShmHeader) == 40 && std::is_trivially_copyable_v<ShmHeader>);

/// Payload of hello, welcome and attach.
struct ShmIntroduction {
  ShmToken secret_of_receiver{};
  ShmToken id_of_sender{};
  ShmToken secret_of_sender{};
  std::uint64_t messages = 0;  // credit: how many the sender will have under way
  std::uint64_t probe_address =
      0;  // of probe_value in the sender's memory: whoever can read it there can fetch payloads
  std::uint64_t probe_value = 0;
};
static_assert(std::is_trivially_copyable_v<ShmIntroduction>);

}  // namespace troupe::transport
