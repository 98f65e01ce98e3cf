#include "transport/exchange/pieces.hpp"

#include <algorithm>
#include <memory>
#include <utility>

#include "core/buffer.hpp"

namespace troupe::exchange {
namespace {

constexpr std::size_t kMostPieces = 1U << 16;  // as many as a tag can number

class Pieces : public std::enable_shared_from_this<Pieces> {
 public:
  Pieces(OperationQueue& operations, PieceMove move) : operations_(operations), move_(std::move(move)) {
    const std::size_t bytes = move_.memory.size;
    const std::size_t least = (bytes / kMostPieces / core::kAlignment + 1) * core::kAlignment;
    piece_bytes_ = std::max(move_.options.bytes, least);
    pieces_ = std::max<std::size_t>(bytes / piece_bytes_ + (bytes % piece_bytes_ > 0 ? 1 : 0), 1);
  }

  void go_on() {
    while (!stopped_ && begun_ < pieces_ && under_way_ < move_.options.window) {
      const std::size_t first = begun_ * piece_bytes_;
      const transport::MemoryView view{move_.memory.data + first, std::min(piece_bytes_, move_.memory.size - first),
                                       move_.memory.space};
      move_.tag.chunk = static_cast<std::uint16_t>(begun_);
      ++begun_;
      ++under_way_;
      auto ended = [self = shared_from_this()](OperationQueue::Ticket, const transport::Completion& completion) {
        self->piece_ended(completion);
      };
      const auto tag = transport::make_tag(move_.tag);
      if (move_.sends)
        operations_.send(move_.peer, tag, view, std::move(ended));
      else
        operations_.receive(move_.peer, tag, view, std::move(ended));
    }
  }

 private:
  void piece_ended(const transport::Completion& completion) {
    --under_way_;
    stopped_ = !move_.piece_ended(completion) || stopped_;
    go_on();
    if (under_way_ == 0) move_.ended();
  }

  OperationQueue& operations_;
  PieceMove move_;
  std::size_t piece_bytes_ = 0;
  std::size_t pieces_ = 1;
  std::size_t begun_ = 0;
  std::size_t under_way_ = 0;
  bool stopped_ = false;
};

}  // namespace

void move_in_pieces(OperationQueue& operations, PieceMove move) {
  std::make_shared<Pieces>(operations, std::move(move))->go_on();
}

}  // namespace troupe::exchange
