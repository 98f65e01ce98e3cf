#include "transport/tcp/connection.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include <fmt/format.h>

#include "transport/common/wire_hash.hpp"

namespace troupe::transport {
namespace {

constexpr int kTurns = 8;  // reads or writes before other connections are served

}  // namespace

TcpConnection::TcpConnection(asio::io_context& io, std::mutex& mutex, std::shared_ptr<TcpSession> session,
                             TcpStream stream, bool hashes, Ended ended)
    : io_(io),
      mutex_(mutex),
      session_(std::move(session)),
      stream_(std::move(stream)),
      hashes_(hashes),
      ended_(std::move(ended)) {}

void TcpConnection::start() {
  read_some();  // TLS may hold bytes without the socket being readable
  kick();
}

void TcpConnection::kick() {
  if (!stopped_ && !waits_write_ && !write_broken_) write_some();
}

unsigned TcpConnection::tick() {
  // On a slow link the socket may hold bytes that nobody was woken for.
  if (!stopped_ && waits_read_ && stream_.holds_back()) read_some();
  return silent_++;
}

void TcpConnection::wait_read() {
  stream_.expect(missing_);
  if (std::exchange(waits_read_, true)) return;
  stream_.socket().async_wait(tcp::socket::wait_read, [self = shared_from_this()](const SystemError& error) {
    self->waits_read_ = false;
    if (!error && !self->stopped_) self->read_some();
  });
}

void TcpConnection::wait_write() {
  if (std::exchange(waits_write_, true)) return;
  stream_.socket().async_wait(tcp::socket::wait_write, [self = shared_from_this()](const SystemError& error) {
    self->waits_write_ = false;
    if (!error && !self->stopped_) self->write_some();
  });
}

/// True if the step moved nothing; then waits or ends the connection.
bool TcpConnection::blocked(TcpStream::Step step) {
  switch (step.state) {
    case TcpStream::State::moved: return false;
    case TcpStream::State::wants_read: wait_read(); break;
    case TcpStream::State::wants_write: wait_write(); break;
    case TcpStream::State::ended: end(Why::broke, {core::Errc::peer_lost, stream_.why()}); break;
    case TcpStream::State::failed: end(Why::over, {core::Errc::corrupt, fmt::format("TLS: {}", stream_.why())}); break;
  }
  return true;
}

void TcpConnection::read_some() {
  for (int turn = 0; turn < kTurns; ++turn) {
    std::array<iovec, 2> parts;
    std::size_t count = 0;
    if (missing_ > 0) parts[count++] = {payload_, missing_};
    const std::size_t before = missing_;
    parts[count++] = {staging_.data() + staged_to_, staging_.size() - staged_to_};
    const auto step = stream_.read({parts.data(), count});
    if (step.state == TcpStream::State::wants_write) wait_read();  // TLS must write first and has no bytes for us yet
    if (blocked(step)) return;
    silent_ = 0;
    const std::size_t direct = std::min(before, step.bytes);
    session_->moved(direct);
    payload_ += direct;
    missing_ -= direct;
    staged_to_ += step.bytes - direct;
    if (!parse()) return;
    kick();  // answers
    if (stopped_) return;
  }
  // Also while a wait is under way: it may be one for the end of a payload that is here by now.
  asio::post(io_, [self = shared_from_this()] {
    if (!self->stopped_) self->read_some();
  });
}

/// Handles all bytes that are there. False: the connection was given up.
bool TcpConnection::parse() {
  for (;;) {
    const std::size_t staged = staged_to_ - staged_from_;
    if (in_payload_) {
      const std::size_t copied = std::min(missing_, staged);
      if (copied > 0) std::memcpy(payload_, staging_.data() + staged_from_, copied);
      session_->moved(copied);
      payload_ += copied;
      missing_ -= copied;
      staged_from_ += copied;
      if (missing_ > 0) {
        staged_from_ = staged_to_ = 0;
        return true;
      }
      in_payload_ = false;
      const bool intact =
          !hashes_ || frame_.length == 0 || wire_hash({payload_ - frame_.length, frame_.length}) == frame_.payload_hash;
      core::Result<void> finished;
      {
        const std::lock_guard lock(mutex_);
        finished = session_->finish(frame_, intact);
      }
      has_heard_ = true;
      if (!finished) return give_up(finished.error()), false;
    } else if (staged < kFrameBytes) {
      std::memmove(staging_.data(), staging_.data() + staged_from_, staged);
      staged_from_ = 0;
      staged_to_ = staged;
      return true;
    } else {
      const auto frame = decode(staging_.data() + staged_from_);
      if (!frame) return give_up({core::Errc::corrupt, "it sent " + frame.error().message}), false;
      frame_ = *frame;
      staged_from_ += kFrameBytes;
      core::Result<std::byte*> place;
      {
        const std::lock_guard lock(mutex_);
        report();  // it may answer a frame of a batch that is only partly written
        place = session_->begin(frame_);
      }
      if (!place) return give_up(place.error()), false;
      payload_ = *place;
      missing_ = frame_.length;
      in_payload_ = true;
    }
  }
}

/// Fetches the frames to write next. False: there are none.
bool TcpConnection::next_batch() {
  {
    const std::lock_guard lock(mutex_);
    report();
    batch_.clear();
    session_->take(batch_);
  }
  reported_ = 0;
  ends_.clear();
  headers_.clear();
  headers_.reserve(batch_.size());  // parts_ points into it
  parts_.clear();
  part_ = 0;
  moves_ = std::ranges::any_of(batch_, [](const Outgoing& o) { return is_numbered(o.frame.type); });
  for (Outgoing& o : batch_) {
    if (hashes_ && o.frame.length > 0) o.frame.payload_hash = wire_hash({o.payload, o.frame.length});
    headers_.push_back(encode(o.frame));
    parts_.push_back({headers_.back().data(), kFrameBytes});
    if (o.frame.length > 0) parts_.push_back({const_cast<std::byte*>(o.payload), o.frame.length});
    ends_.push_back(parts_.size());
  }
  return !parts_.empty();
}

void TcpConnection::advance(std::size_t bytes) {
  if (moves_) session_->moved(bytes);
  while (part_ < parts_.size() && bytes >= parts_[part_].iov_len) bytes -= parts_[part_++].iov_len;
  if (bytes == 0) return;
  iovec& part = parts_[part_];
  part.iov_base = static_cast<char*>(part.iov_base) + bytes;
  part.iov_len -= bytes;
}

/// With the mutex: reports to the session which frames of the batch are written.
void TcpConnection::report() {
  std::size_t left = reported_;
  while (left < batch_.size() && ends_[left] <= part_) ++left;
  session_->wrote(std::span(batch_).subspan(reported_, left - reported_));
  reported_ = left;
}

void TcpConnection::write_some() {
  for (int turn = 0; turn < kTurns; ++turn) {
    const bool has_more = part_ < parts_.size() || next_batch();
    if (!has_more && !stream_.holds_bytes()) return;
    const auto step = has_more ? stream_.write({parts_.data() + part_, parts_.size() - part_}) : stream_.flush();
    if (step.state == TcpStream::State::ended) {
      // The peer's last frames, perhaps a bye with the reason, must still be read; reading then finds the end.
      write_broken_ = true;
      wait_read();
      return;
    }
    if (blocked(step) || !has_more) return;
    advance(step.bytes);
  }
  asio::post(io_, [self = shared_from_this()] { self->kick(); });
}

void TcpConnection::stop(std::string_view why) {
  if (std::exchange(stopped_, true)) return;
  ended_ = nullptr;
  if (part_ == parts_.size()) {  // else it would cut a frame in two parts
    const std::string text(why.substr(0, kTextBytes));
    const FrameBytes header = encode({.type = FrameType::bye,
                                      .length = static_cast<std::uint32_t>(text.size()),
                                      .payload_hash = hashes_ ? wire_hash(text) : 0});
    const std::array<iovec, 2> parts{
        {{const_cast<std::byte*>(header.data()), header.size()}, {const_cast<char*>(text.data()), text.size()}}};
    (void)stream_.write(parts);  // best effort: a peer that connects again receives the reason
  }
  stream_.close();
}

void TcpConnection::abandon() {
  if (std::exchange(stopped_, true)) return;
  ended_ = nullptr;
  stream_.close();
}

void TcpConnection::give_up(const core::Error& error) {
  const Ended ended = std::exchange(ended_, nullptr);
  stop("it gave this connection up: " + error.message);
  if (ended) ended(Why::over, error);
}

void TcpConnection::end(Why why, const core::Error& error) {
  const Ended ended = std::exchange(ended_, nullptr);
  abandon();
  if (ended) ended(why, error);
}

}  // namespace troupe::transport
