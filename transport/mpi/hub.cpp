#include "transport/mpi/hub.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <random>

#include <fmt/format.h>

#if __has_include(<mpi-ext.h>)
#include <mpi-ext.h>  // Open MPI's: MPIX_Query_cuda_support
#endif

namespace troupe::transport {
namespace {

constexpr int kFrameTag = 0;

struct Envelope {
  std::uint32_t to, from;
};

}  // namespace

core::Result<std::shared_ptr<MpiHub>> MpiHub::get() {
  static std::mutex making;
  static std::shared_ptr<MpiHub> hub;  // until the process ends: MPI starts only once
  const std::lock_guard lock(making);
  if (!hub) {
    std::shared_ptr<MpiHub> made(new MpiHub);
    if (const auto started = made->start(); !started) return tl::unexpected(started.error());
    hub = std::move(made);
  }
  return hub;
}

core::Result<void> MpiHub::start() {
  int initialised = 0, finalised = 0, provided = MPI_THREAD_SINGLE;
  MPI_Initialized(&initialised);
  MPI_Finalized(&finalised);
  if (finalised) return core::fail(core::Errc::config, "endpoint 'mpi': MPI has ended in this process already");
  if (initialised) {
    MPI_Query_thread(&provided);
  } else {
    if (MPI_Init_thread(nullptr, nullptr, MPI_THREAD_MULTIPLE, &provided) != MPI_SUCCESS)
      return core::fail(core::Errc::config, "endpoint 'mpi': MPI does not start in this process");
    finalise_ = true;
  }
  if (provided < MPI_THREAD_MULTIPLE)
    return core::fail(core::Errc::config, "endpoint 'mpi': this MPI was built or started without MPI_THREAD_MULTIPLE");
  for (MPI_Comm* comm : {&frames_, &bulk_, &sums_}) {
    MPI_Comm_dup(MPI_COMM_WORLD, comm);
    MPI_Comm_set_errhandler(*comm, MPI_ERRORS_RETURN);
  }
  MPI_Comm_rank(frames_, &rank_);
  MPI_Comm_size(frames_, &size_);
  void* bound = nullptr;
  int known = 0;
  MPI_Comm_get_attr(bulk_, MPI_TAG_UB, &bound, &known);
  auto tags = TransferTags::below(known ? *static_cast<int*>(bound) : 0);
  if (!tags) return tl::unexpected(tags.error());
  tags_ = std::move(*tags);
  std::random_device random;
  std::array<unsigned, 2> job{random(), random()};
  MPI_Bcast(job.data(), 2, MPI_UNSIGNED, 0, frames_);
  job_ = fmt::format("{:08x}{:08x}", job[0], job[1]);
  return {};
}

bool MpiHub::takes_device() noexcept {
#ifdef MPIX_CUDA_AWARE_SUPPORT
  return MPIX_Query_cuda_support() == 1;
#else
  return false;
#endif
}

DeviceSupport MpiHub::device_support() {
#ifdef MPIX_CUDA_AWARE_SUPPORT
  int initialised = 0, finalised = 0;
  MPI_Initialized(&initialised);
  MPI_Finalized(&finalised);
  if (!initialised || finalised)
    return {.takes = std::nullopt, .why_not = "Open MPI says only to a job that it has started: ask under mpirun"};
  if (takes_device()) return {.takes = true, .why_not = {}};
  return {.takes = false, .why_not = "this Open MPI was built without CUDA (MPIX_Query_cuda_support)"};
#else
  return {.takes = false, .why_not = "this MPI cannot be asked: it has no MPIX_Query_cuda_support"};
#endif
}

MpiHub::~MpiHub() {
  int finalised = 0;
  MPI_Finalized(&finalised);
  if (finalise_ && !finalised) MPI_Finalize();
}

void MpiHub::keep(std::shared_ptr<void> memory) {
  const std::lock_guard lock(mutex_);
  kept_.push_back(std::move(memory));
}

int MpiHub::take_tag(int rank) {
  const std::lock_guard lock(mutex_);
  return tags_->take(rank);
}

void MpiHub::give_back_tag(int rank, int tag) {
  const std::lock_guard lock(mutex_);
  tags_->give_back(rank, tag);
}

std::uint32_t MpiHub::join() {
  const std::lock_guard lock(mutex_);
  const std::uint32_t slot = next_slot_++;
  messages_.emplace(slot, std::deque<SmallMessage>{});
  return slot;
}

void MpiHub::leave(std::uint32_t slot) {
  const std::lock_guard lock(mutex_);
  const auto unread = messages_.extract(slot);
  for (const auto& message : unread.mapped())
    if (!message.frame.empty()) send_news(message.from, slot);
}

void MpiHub::send_news(MpiPlace to, std::uint32_t about) {
  auto& news = news_.emplace_back(std::make_unique<Outgoing>());
  news->bytes = wrap({rank_, about}, to, {});
  news->request = send(to.rank, news->bytes);
}

bool MpiHub::is_here(std::uint32_t slot) {
  const std::lock_guard lock(mutex_);
  return messages_.contains(slot);
}

std::vector<std::byte> MpiHub::wrap(MpiPlace from, MpiPlace to, std::span<const std::byte> frame) {
  const Envelope envelope{to.slot, from.slot};
  std::vector<std::byte> bytes(sizeof envelope + frame.size());
  std::memcpy(bytes.data(), &envelope, sizeof envelope);
  if (!frame.empty()) std::memcpy(bytes.data() + sizeof envelope, frame.data(), frame.size());
  return bytes;
}

MPI_Request MpiHub::send(int rank, const std::vector<std::byte>& bytes) {
  MPI_Request request = MPI_REQUEST_NULL;
  MPI_Isend(bytes.data(), static_cast<int>(bytes.size()), MPI_BYTE, rank, kFrameTag, frames_, &request);
  return request;
}

bool MpiHub::take(std::uint32_t slot, std::deque<SmallMessage>& out) {
  const std::lock_guard lock(mutex_);
  take_in();
  auto& mine = messages_.at(slot);
  if (mine.empty()) return false;
  std::ranges::move(mine, std::back_inserter(out));
  mine.clear();
  return true;
}

void MpiHub::take_in() {
  constexpr int kAtOnce = 64;  // frames per call, so that the caller can continue
  for (int i = 0; i < kAtOnce; ++i) {
    int there = 0;
    MPI_Message message = MPI_MESSAGE_NULL;
    MPI_Status status;
    if (MPI_Improbe(MPI_ANY_SOURCE, kFrameTag, frames_, &there, &message, &status) != MPI_SUCCESS || !there) break;
    int length = 0;
    MPI_Get_count(&status, MPI_BYTE, &length);
    std::vector<std::byte> bytes(static_cast<std::size_t>(length));
    MPI_Mrecv(bytes.data(), length, MPI_BYTE, &message, MPI_STATUS_IGNORE);
    Envelope envelope{};
    if (bytes.size() < sizeof envelope) continue;
    std::memcpy(&envelope, bytes.data(), sizeof envelope);
    const MpiPlace from{status.MPI_SOURCE, envelope.from};
    const std::span frame(bytes.begin() + sizeof envelope, bytes.end());
    if (const auto found = messages_.find(envelope.to); found != messages_.end()) {
      found->second.push_back({from, {frame.begin(), frame.end()}});
    } else if (!frame.empty()) {  // an empty frame gets no answer
      send_news(from, envelope.to);
    }
  }
  std::erase_if(news_, [](auto& news) {
    int sent = 0;
    MPI_Test(&news->request, &sent, MPI_STATUS_IGNORE);
    return sent != 0;
  });
  std::erase_if(unwanted_, [this](const auto& from) {
    int there = 0;
    MPI_Message message = MPI_MESSAGE_NULL;
    MPI_Status status;
    MPI_Improbe(from.first, from.second, bulk_, &there, &message, &status);
    if (!there) return false;
    int length = 0;
    MPI_Get_count(&status, MPI_BYTE, &length);
    std::vector<std::byte> bytes(static_cast<std::size_t>(length));
    MPI_Mrecv(bytes.data(), length, MPI_BYTE, &message, MPI_STATUS_IGNORE);
    return true;
  });
}

void MpiHub::throw_away(int rank, int tag) {
  constexpr std::size_t kMost = 64;  // most of them never arrive: the oldest are forgotten
  const std::lock_guard lock(mutex_);
  if (unwanted_.size() >= kMost) unwanted_.erase(unwanted_.begin());
  unwanted_.emplace_back(rank, tag);
}

}  // namespace troupe::transport
