#include "gpu/nccl/reduction.hpp"

#include <chrono>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

#include <fmt/format.h>

namespace troupe::gpu {
namespace {

std::string text_of(const NcclUniqueId& id) {
  std::string text;
  for (const char byte : id.bytes) text += fmt::format("{:02x}", static_cast<unsigned char>(byte));
  return text;
}

std::optional<NcclUniqueId> id_of(const std::string& text) {
  NcclUniqueId id;
  if (text.size() != 2 * id.bytes.size() || text.find_first_not_of("0123456789abcdef") != std::string::npos) return {};
  for (std::size_t i = 0; i < id.bytes.size(); ++i)
    id.bytes[i] = static_cast<char>(std::stoi(text.substr(2 * i, 2), nullptr, 16));
  return id;
}

/// In which a call that waits for no peer ends.
constexpr std::chrono::milliseconds kCallTime{200};

core::Error over() { return {core::Errc::interrupted, "sums by NCCL have ended"}; }

core::Error join_error(const NcclLibrary& library, int status) {
  core::Error error = library.error(status, "ncclCommInitRank");
  if (status == kNcclInvalidUsage)
    error.message +=
        "; NCCL wants a GPU of its own for each worker: with several workers on one GPU use exchange.algorithm = "
        "\"auto\"";
  return error;
}

}  // namespace

struct NcclReduction::State {
  struct Sum {
    core::Span vector;
    Done done;
  };

  State(std::shared_ptr<Device> on, std::shared_ptr<const NcclLibrary> by)
      : device(std::move(on)), library(std::move(by)) {}

  void run(const NcclUniqueId& id, int rank, int ranks);
  [[nodiscard]] core::Result<void> begin(Stream& stream, core::Span vector);
  void end_all(const core::Error& why);

  const std::shared_ptr<Device> device;
  const std::shared_ptr<const NcclLibrary> library;

  std::mutex mutex;  // guards the rest
  std::condition_variable changed;
  NcclComm comm = nullptr;  // null: not joined, or aborted
  std::size_t members = 0;
  Done joined;           // of join(), until it ends
  std::deque<Sum> sums;  // the first one is under way
  std::optional<core::Error> aborted;
  bool in_library = true;  // the thread is in the call that joins
  bool calls = false;      // it is in the call that begins a sum
  std::thread thread;
};

/// Ends what has not ended, without the lock.
void NcclReduction::State::end_all(const core::Error& why) {
  Done join;
  std::deque<Sum> waiting;
  {
    const std::lock_guard lock(mutex);
    join = std::exchange(joined, {});
    // The vector of the first sum is the library's until the thread has it back.
    while (sums.size() > 1) {
      waiting.push_front(std::move(sums.back()));
      sums.pop_back();
    }
  }
  if (join) join(tl::unexpected(why));
  for (auto& sum : waiting) sum.done(tl::unexpected(why));
}

core::Result<void> NcclReduction::State::begin(Stream& stream, core::Span vector) {
  NcclComm with = nullptr;
  {
    const std::lock_guard lock(mutex);
    if (aborted) return tl::unexpected(*aborted);
    with = comm;
    calls = true;
  }
  const int status =
      library->all_reduce(vector.data(), vector.data(), vector.size(), kNcclFloat32, kNcclSum, with, stream.native());
  {
    const std::lock_guard lock(mutex);
    calls = false;
    changed.notify_all();
  }
  if (status != kNcclSuccess && status != kNcclInProgress)
    return tl::unexpected(library->error(status, "ncclAllReduce"));
  return {};
}

void NcclReduction::State::run(const NcclUniqueId& id, int rank, int ranks) {
  auto stream = device->make_stream();  // also makes the device this thread's
  NcclComm made = nullptr;
  core::Result<void> result;
  if (!stream) result = tl::unexpected(stream.error());
  if (stream)
    if (const int status = library->init_rank(&made, ranks, id, rank); status != kNcclSuccess)
      result = tl::unexpected(join_error(*library, status));
  Done join;
  {
    const std::lock_guard lock(mutex);
    in_library = false;
    join = std::exchange(joined, {});
    if (!result && !aborted) aborted = result.error();
    if (!aborted) {
      comm = std::exchange(made, nullptr);
      members = static_cast<std::size_t>(ranks);
    }
    changed.notify_all();
  }
  if (made) (void)library->abort(made);  // all joined after this one had been given up
  if (join) join(result);
  for (;;) {
    core::Span vector;
    {
      std::unique_lock lock(mutex);
      changed.wait(lock, [this] { return aborted || !sums.empty(); });
      if (sums.empty()) return;  // aborted
      vector = sums.front().vector;
    }
    auto summed = begin(**stream, vector);
    const auto waited = (*stream)->synchronize();  // in any case: the library may have begun
    if (summed) summed = waited;
    Done done;
    {
      const std::lock_guard lock(mutex);
      done = std::move(sums.front().done);
      sums.pop_front();
      if (aborted) summed = tl::unexpected(*aborted);
    }
    done(summed);
  }
}

NcclReduction::NcclReduction(std::shared_ptr<Device> device, std::shared_ptr<const NcclLibrary> library)
    : state_(std::make_shared<State>(std::move(device), std::move(library))) {}

NcclReduction::~NcclReduction() {
  abort(over());
  std::unique_lock lock(state_->mutex);
  auto thread = std::move(state_->thread);
  const bool waits = state_->in_library;
  lock.unlock();
  if (!thread.joinable()) return;
  waits ? thread.detach() : thread.join();
}

core::Result<std::string> NcclReduction::make_group() {
  NcclUniqueId id;
  if (const int status = state_->library->get_unique_id(&id); status != kNcclSuccess)
    return tl::unexpected(state_->library->error(status, "ncclGetUniqueId"));
  return text_of(id);
}

void NcclReduction::join(const std::string& group, std::size_t rank, std::size_t members, Done done) {
  const auto id = id_of(group);
  if (!id) return done(core::fail(core::Errc::config, "it is no name of a group of NCCL's"));
  std::unique_lock lock(state_->mutex);
  if (state_->thread.joinable()) {
    lock.unlock();
    return done(core::fail(core::Errc::config, "NCCL: it has joined a group already"));
  }
  state_->joined = std::move(done);
  state_->thread = std::thread(
      [state = state_, id = *id, rank, members] { state->run(id, static_cast<int>(rank), static_cast<int>(members)); });
}

std::size_t NcclReduction::members() const noexcept {
  const std::lock_guard lock(state_->mutex);
  return state_->members;
}

void NcclReduction::sum(core::Span vector, Done done) {
  std::optional<core::Error> refused;
  {
    const std::lock_guard lock(state_->mutex);
    refused = state_->aborted;
    if (!refused) state_->sums.push_back({vector, std::move(done)});
    state_->changed.notify_all();
  }
  if (refused) done(tl::unexpected(*refused));
}

void NcclReduction::abort(const core::Error& why) {
  NcclComm comm = nullptr;
  {
    std::unique_lock lock(state_->mutex);
    if (state_->aborted) return;
    state_->aborted = why;
    comm = std::exchange(state_->comm, nullptr);
    state_->changed.notify_all();
    // A call that has begun ends soon, or waits in the library for a peer, and then the library expects to be aborted.
    state_->changed.wait_for(lock, kCallTime, [this] { return !state_->calls; });
  }
  if (comm) (void)state_->library->abort(comm);  // its kernels end, and with them the thread's wait
  state_->end_all(why);
}

core::Result<void> NcclReduction::check() {
  int status = kNcclSuccess;
  {
    const std::lock_guard lock(state_->mutex);  // held, so that no abort() frees the communicator meanwhile
    if (!state_->comm) return {};
    if (const int asked = state_->library->get_async_error(state_->comm, &status); asked != kNcclSuccess)
      status = asked;
  }
  if (status == kNcclSuccess || status == kNcclInProgress) return {};
  return tl::unexpected(state_->library->error(status, "a sum"));
}

}  // namespace troupe::gpu
