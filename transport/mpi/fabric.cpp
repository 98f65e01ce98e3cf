#include "transport/mpi/fabric.hpp"

#include <poll.h>
#include <sched.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <ctime>
#include <limits>
#include <optional>
#include <system_error>
#include <utility>

#include <fmt/format.h>

namespace troupe::transport {
namespace {

constexpr std::chrono::milliseconds kGrace{250};
constexpr std::chrono::seconds kPatience{10};  // for peers to receive what they have accepted
// The first kEager waits do not sleep, then waits are short, then long; after a second without events they are longest.
constexpr unsigned kEager = 50, kBusy = 200, kQuiet = 1200;
constexpr long kShortNs = 50'000, kLongNs = 1'000'000, kLongestNs = 5'000'000;

/// Parses "12.3": rank and slot.
std::optional<MpiPlace> place_of(std::string_view text) {
  MpiPlace place;
  const char* const end = text.data() + text.size();
  const auto rank = std::from_chars(text.data(), end, place.rank);
  if (rank.ec != std::errc{} || rank.ptr == end || *rank.ptr != '.') return std::nullopt;
  const auto slot = std::from_chars(rank.ptr + 1, end, place.slot);
  if (slot.ec != std::errc{} || slot.ptr != end) return std::nullopt;
  return place;
}

}  // namespace

core::Result<std::unique_ptr<Fabric>> MpiFabric::make(const FabricOptions& options) {
  auto hub = MpiHub::get();
  if (!hub) return tl::unexpected(hub.error());
  const int wake_fd = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (wake_fd < 0)
    return core::fail(core::Errc::io, fmt::format("cannot create the event descriptor of an mpi endpoint: {}",
                                                  std::generic_category().message(errno)));
  constexpr std::size_t kMost = std::numeric_limits<int>::max();
  return std::unique_ptr<Fabric>(
      new MpiFabric(std::move(*hub), wake_fd, std::clamp<std::size_t>(options.piece, 1, kMost)));
}

MpiFabric::MpiFabric(std::shared_ptr<MpiHub> hub, int wake_fd, std::size_t piece)
    : hub_(std::move(hub)),
      self_{hub_->rank(), hub_->join()},
      address_(fmt::format("{}.{}.{}", hub_->job(), self_.rank, self_.slot)),
      wake_fd_(wake_fd),
      piece_(piece) {}

MpiFabric::~MpiFabric() {
  if (hub_->is_here(self_.slot)) hub_->leave(self_.slot);
  ::close(wake_fd_);
}

core::Result<WireId> MpiFabric::open(std::string_view address) {
  const std::string& job = hub_->job();
  if (!address.starts_with(job + ".")) return core::fail(core::Errc::usage, "its address is not one of this MPI job");
  const auto to = place_of(address.substr(job.size() + 1));
  if (!to || to->rank < 0 || to->rank >= hub_->size())
    return core::fail(core::Errc::usage, "its address names no rank of this MPI job");
  if (to->rank == self_.rank && !hub_->is_here(to->slot))
    return core::fail(core::Errc::peer_lost, "it is not in this process");
  const WireId id{next_wire_++};
  wires_.emplace(id, Wire{.to = *to});
  return id;
}

void MpiFabric::begin(Task task, MPI_Request request) {
  tasks_.push_back(std::move(task));
  requests_.push_back(request);
  idle_ = 0;
}

void MpiFabric::send_frame(WireId wire, std::span<const std::byte> frame) {
  const auto found = wires_.find(wire);
  if (found == wires_.end() || found->second.gone) return;
  Task task{.kind = Task::Kind::frame, .wire = wire};
  task.frame = std::make_unique<std::vector<std::byte>>(MpiHub::wrap(self_, found->second.to, frame));
  const MPI_Request request = hub_->send(found->second.to.rank, *task.frame);
  begin(std::move(task), request);
}

template <class Post>
void MpiFabric::begin_pieces(Task task, std::size_t size, std::size_t piece, const Post& post) {
  cuts_[task.transfer] = {.pieces_left = std::max<std::size_t>((size + piece - 1) / piece, 1)};
  std::size_t at = 0;
  do {
    const std::size_t count = std::min(piece, size - at);
    MPI_Request request = MPI_REQUEST_NULL;
    post(at, static_cast<int>(count), &request);
    begin({.kind = task.kind, .wire = task.wire, .transfer = task.transfer, .size = count, .tag = task.tag}, request);
    at += count;
  } while (at < size);
}

std::uint64_t MpiFabric::receive(WireId wire, MemoryView memory, TransferId transfer) {
  const int rank = wires_.at(wire).to.rank, tag = hub_->take_tag(rank);
  begin_pieces({.kind = Task::Kind::receive, .wire = wire, .transfer = transfer, .tag = tag}, memory.size,
               std::min(piece_, kMaxPieceBytes), [&](std::size_t at, int count, MPI_Request* request) {
                 MPI_Irecv(memory.data + at, count, MPI_BYTE, rank, tag, hub_->bulk(), request);
               });
  return static_cast<std::uint64_t>(tag);
}

void MpiFabric::send(WireId wire, std::uint64_t channel, ConstMemoryView memory, TransferId transfer) {
  const int rank = wires_.at(wire).to.rank;
  begin_pieces({.kind = Task::Kind::send, .wire = wire, .transfer = transfer}, memory.size,
               std::min(piece_, kMaxPieceBytes), [&](std::size_t at, int count, MPI_Request* request) {
                 MPI_Isend(memory.data + at, count, MPI_BYTE, rank, static_cast<int>(channel), hub_->bulk(), request);
               });
}

void MpiFabric::sum(core::Span vector, TransferId transfer) {
  begin_pieces({.kind = Task::Kind::sum, .transfer = transfer}, vector.size(), piece_,
               [&](std::size_t at, int count, MPI_Request* request) {
                 MPI_Iallreduce(MPI_IN_PLACE, vector.data() + at, count, MPI_FLOAT, MPI_SUM, hub_->sums(), request);
               });
}

void MpiFabric::close(WireId wire) {
  const auto found = wires_.find(wire);
  if (found == wires_.end()) return;
  found->second.closing = true;
  // An accepted transfer normally arrives: only its arrival lets the sender release the memory.
  found->second.give_up = found->second.gone ? Clock::now() : Clock::now() + kGrace;
}

void MpiFabric::give_up_receives() {
  const auto now = Clock::now();
  for (std::size_t i = 0; i < tasks_.size(); ++i) {
    Task& task = tasks_[i];
    if (task.kind != Task::Kind::receive || task.given_up) continue;
    const Wire& wire = wires_.at(task.wire);
    if (!wire.closing || now < wire.give_up) continue;
    task.given_up = true;
    MPI_Cancel(&requests_[i]);
  }
  std::erase_if(wires_, [&](const auto& entry) {
    return entry.second.closing && now >= entry.second.give_up &&
           std::ranges::none_of(tasks_, [&](const Task& task) { return task.wire == entry.first; });
  });
}

bool MpiFabric::end_tasks(FabricEvents& events) {
  if (requests_.empty()) return false;
  int count = 0;
  finished_.resize(requests_.size());
  statuses_.resize(requests_.size());
  const int result =
      MPI_Testsome(static_cast<int>(requests_.size()), requests_.data(), &count, finished_.data(), statuses_.data());
  if (count == MPI_UNDEFINED || count == 0) return false;
  std::vector<std::pair<TransferId, bool>> ended;
  std::vector<TransferId> pieces;
  for (int i = 0; i < count; ++i) {
    const Task& task = tasks_[static_cast<std::size_t>(finished_[static_cast<std::size_t>(i)])];
    MPI_Status& status = statuses_[static_cast<std::size_t>(i)];
    if (task.kind == Task::Kind::frame) continue;
    bool whole = result == MPI_SUCCESS || (result == MPI_ERR_IN_STATUS && status.MPI_ERROR == MPI_SUCCESS);
    if (task.kind == Task::Kind::receive) {
      int cancelled = 0, length = 0;
      MPI_Test_cancelled(&status, &cancelled);
      MPI_Get_count(&status, MPI_BYTE, &length);
      if (cancelled) hub_->throw_away(wires_.at(task.wire).to.rank, task.tag);
      whole = whole && !cancelled && static_cast<std::size_t>(length) == task.size;
    }
    const auto cut = cuts_.find(task.transfer);
    cut->second.whole &= whole;
    if (--cut->second.pieces_left > 0) {
      pieces.push_back(task.transfer);
      continue;
    }
    if (task.kind == Task::Kind::receive && cut->second.whole)
      hub_->give_back_tag(wires_.at(task.wire).to.rank, task.tag);
    ended.emplace_back(task.transfer, cut->second.whole);
    cuts_.erase(cut);
  }
  std::size_t kept = 0;
  for (std::size_t i = 0; i < requests_.size(); ++i) {
    if (requests_[i] == MPI_REQUEST_NULL) continue;
    if (kept != i) {
      requests_[kept] = requests_[i];
      tasks_[kept] = std::move(tasks_[i]);
    }
    ++kept;
  }
  requests_.resize(kept);
  tasks_.resize(kept);
  for (const auto transfer : pieces) events.on_piece(transfer);
  for (const auto& [transfer, whole] : ended) events.on_transferred(transfer, whole);
  return true;
}

bool MpiFabric::read_messages(FabricEvents& events) {
  hub_->take(self_.slot, messages_);
  if (messages_.empty()) return false;
  while (!messages_.empty()) {
    const MpiHub::SmallMessage message = std::move(messages_.front());
    messages_.pop_front();
    if (!message.frame.empty()) {
      events.on_frame(message.frame);
      continue;
    }
    std::vector<WireId> lost;
    for (auto& [id, wire] : wires_) {
      if (wire.to != message.from) continue;
      wire.gone = true;
      wire.give_up = Clock::now();
      if (!wire.closing) lost.push_back(id);
    }
    for (const WireId id : lost) events.on_wire_lost(id, "it closed its endpoint");
  }
  return true;
}

bool MpiFabric::progress(FabricEvents& events) {
  const bool read = read_messages(events);
  const bool ended = end_tasks(events);
  give_up_receives();
  if (read || ended) idle_ = 0;
  return read || ended;
}

void MpiFabric::wait() noexcept {
  const unsigned idle = idle_.fetch_add(1, std::memory_order_relaxed);
  if (idle < kEager) {
    ::sched_yield();
    return;
  }
  const timespec nap{0, idle < kBusy ? kShortNs : idle < kQuiet ? kLongNs : kLongestNs};
  pollfd watched{wake_fd_, POLLIN, 0};
  eventfd_t ignored = 0;
  if (::ppoll(&watched, 1, &nap, nullptr) > 0) ::eventfd_read(wake_fd_, &ignored);
}

void MpiFabric::wake() noexcept { ::eventfd_write(wake_fd_, 1); }

void MpiFabric::shutdown(FabricEvents& events) noexcept {
  for (auto& [id, wire] : wires_)
    if (!wire.closing) close(id);
  const auto give_up = Clock::now() + kPatience;
  while (!tasks_.empty() && Clock::now() < give_up)
    if (!progress(events)) ::sched_yield();
  hub_->leave(self_.slot);
  tasks_.clear();
  requests_.clear();
  for (const auto& [transfer, cut] : std::exchange(cuts_, {})) events.on_transferred(transfer, false);
}

}  // namespace troupe::transport
