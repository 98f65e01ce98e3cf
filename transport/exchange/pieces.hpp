/// A vector sent or received as messages of limited length, several of them under way: copies between a device and the host overlap with
/// transfers, and the memory for them is bounded. Both ends cut alike. Internal to exchange/.
#pragma once

#include <cstddef>
#include <functional>
#include <limits>

#include "transport/exchange/operation_queue.hpp"

namespace troupe::exchange {

struct PieceOptions {
  std::size_t bytes =
      std::numeric_limits<std::size_t>::max();  // of a message, a multiple of core::kAlignment; by default one message
  std::size_t window = 8;                       // messages under way at a time, above 0
};

struct PieceMove {
  bool sends = false;
  transport::Peer peer{};
  transport::TagFields tag{};      // chunk: set for each piece
  transport::MemoryView memory{};  // lent until `ended`; only read when it is sent
  PieceOptions options{};
  std::function<bool(const transport::Completion&)> piece_ended;  // false: no further piece shall move
  std::function<void()> ended;  // once, when no piece is under way any more: all have moved, or none shall
};

/// Begins to move; the callbacks run in those of `operations`. An empty vector is one empty message.
void move_in_pieces(OperationQueue& operations, PieceMove move);

}  // namespace troupe::exchange
