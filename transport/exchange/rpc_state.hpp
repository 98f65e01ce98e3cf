/// The calls of an Rpc that have not ended, at both ends. Internal to exchange/.
#pragma once

#include <array>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "transport/exchange/arenas.hpp"
#include "transport/exchange/envelope.hpp"
#include "transport/exchange/on_wire.hpp"
#include "transport/exchange/rpc.hpp"

namespace troupe::exchange {

struct Rpc::Outgoing {
  Envelope envelope;
  PaddedSlice slice;
  std::shared_ptr<const void> owner;  // of the slice
  VectorPool::Loan room;
  WireMemory memory;  // in the room
  ArenaPlace place;   // of a vector that is lent in place
  Answered answered;
  std::size_t moves_left = 0;          // of the vector, to the callee and back
  std::size_t posted = 0;              // operations that have not ended: they borrow the caller's memory
  std::optional<Envelope> answer{};    // of the callee
  std::optional<core::Error> error{};  // that ended the channel
};

struct Rpc::ServedCall {
  Channel& channel;
  Envelope envelope;  // of the call; from the reply on, that of the answer
  WireFormat format;
  std::size_t floats_counted = 0;
  VectorPool::Loan room;
  WireMemory memory;  // in the room
  VectorPool::Loan whole;
  PaddedSlice slice;   // in `whole`, where the handler asked for it
  ArenaPlace place{};  // of a vector that is lent in place
  std::optional<core::Result<transport::Mapping>> mapping{};
  bool vector_arrived = false;  // all of it
  bool replied = false;
  int sends_left = 0;  // of the answer
};

/// The calls from and to one peer.
struct Rpc::Channel {
  transport::Peer peer{};
  std::optional<core::Error> lost{};
  std::uint32_t next_id = 0;
  std::array<Envelope, 2> received{};  // one is handled while the next one arrives
  std::size_t newest = 0;
  std::map<std::uint32_t, std::shared_ptr<Outgoing>> calls{};  // at most kMostCallsBegun
  std::deque<std::shared_ptr<Outgoing>> not_begun{};           // calls that wait for the answers to others
  // Received calls, in the peer's order; the first `with_memory` have their memory.
  std::deque<std::shared_ptr<ServedCall>> waiting{};
  std::size_t with_memory = 0;
  std::size_t open = 0;         // received calls with memory whose answers are not sent yet
  std::size_t open_floats = 0;  // floats of their vectors
  bool lends = false;           // calls to the peer lend in place
  bool maps = false;            // this site maps the peer's arenas
  bool handing_over = false;

  bool may_be_mapped = false;                              // the peer may have mapped an arena of this site
  bool parting = false;                                    // this site maps nothing more of the peer's
  bool farewell_sent = false, farewell_delivered = false;  // this site's farewell
  bool farewell_received = false;                          // the peer's farewell
  Envelope farewell{.type = Envelope::Type::farewell};
  std::optional<std::string> disconnect_reason{};  // why: disconnect the peer when the farewell has arrived
  int farewell_checks = 0;                         // while disconnect_reason is set
};

}  // namespace troupe::exchange
